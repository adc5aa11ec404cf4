import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { openLogSource } from "#tlog/log-source.ts";
import { formatSecretKey } from "#tlog/note.ts";
import { verifyProof } from "#tlog/receipt.ts";
import { openConfirmations } from "../../src/core/commit/confirm-reads.ts";
import { ENTITY_TYPE } from "../../src/core/voucher/voucher.ts";
import { auditServedTlog } from "../../src/transparency/audit-served-log.ts";
import { findPublished, publishCheckpoint } from "../../src/transparency/db/log-checkpoints.ts";
import { findTlogTree, selectTlogTiles } from "../../src/transparency/db/log-tree.ts";
import { readEventProof } from "../../src/transparency/read-receipt.ts";
import { type RetireOptions, retireTlog } from "../../src/transparency/retire-log.ts";
import { assertInvariants } from "../support/invariants.ts";
import { backUp, dieAt, NEXT_ORIGIN, ORIGIN, settingsOf, startWitness, tamper } from "../support/log-setup.ts";
import { besideTransaction, untilWaiting } from "../support/outside-transaction.ts";
import { openServicePool } from "../support/servers.ts";
import { signCheckpoint } from "../support/sign-checkpoint.ts";
import { provisioning } from "../support/supply.ts";
import { untilStarted } from "../support/until.ts";
import { useLog } from "../support/use-log.ts";

const { servers, db, files, next, at, issue, begin, run, audit, ...log } = useLog();
const { exportTo, recoverFrom, monitor, policyIn, beginWithBackup } = log;

const refused = (reason: RegExp) => ({ placed: 0, refused: expect.stringMatching(reason) });

it("after `log retire`, receipts stay valid under the old log's policy; the next log has the same leaves", async () => {
  const { url, state } = await startWitness(servers, files);
  files.setWitnesses([url]);
  next.setWitnesses([url]);
  await begin();
  const [voucher] = await issue(300);
  await run();
  const before = await findPublished(db);
  const receipt = await proofOf(voucher?.id ?? "");
  await exportTo("retired");
  await monitor("retired", { keep: true });
  await issue(5);

  expect(await retire()).toEqual({
    origin: ORIGIN,
    nextOrigin: NEXT_ORIGIN,
    size: 300,
    lastSize: 300,
    exported: 300,
    anchorsWritten: [next.anchor],
  });
  // The retired log's receipts stay valid, because its export suffices to verify them.
  expect(readFileSync(at("retired/checkpoint"), "utf8")).toBe(before?.note);
  const { rows } = await db.query("SELECT record_hash FROM voucher_events WHERE voucher_id = $1", [voucher?.id]);
  const recordHash: Buffer = rows[0]?.record_hash;
  const policy = await policyIn("retired");
  const old = await verifyProof(receipt, policy, recordHash);
  expect(old).toMatchObject({ origin: ORIGIN, size: 300 });
  const source = openLogSource(at("retired"));
  const exported = await auditServedTlog({ log: source, histories: source, policy, vouchers: [] });
  expect(exported).toMatchObject({ origin: ORIGIN, leaves: 300, problemCount: 0 });
  // Both logs have signed the retired log's last checkpoint, and the next log has a leaf for it.
  const last = readFileSync(at("retired/last-checkpoint"), "utf8");
  expect(last).toContain(`\n— ${ORIGIN} `);
  expect(last).toContain(`\n— ${NEXT_ORIGIN} `);
  expect(await leafOf(300)).toBe(sha256("retired/last-checkpoint"));
  // A worker with the retired log's key signs nothing.
  const anchor = readFileSync(files.anchor, "utf8");
  const gone = `The database has the log ${NEXT_ORIGIN}, not ${ORIGIN}.`;
  expect(await run()).toMatchObject({ placed: 0, refused: gone });
  expect([await findPublished(db), readFileSync(files.anchor, "utf8")]).toEqual([null, anchor]);
  await expect(proofOf(voucher?.id ?? "")).rejects.toThrow(expect.objectContaining({ code: "not_logged_yet" }));

  expect(await run(next)).toMatchObject({ placed: 5, size: 306, published: 306, cosigned: 1, refused: null });
  expect([state().size, JSON.parse(readFileSync(at("witness-0"), "utf8"))[NEXT_ORIGIN].size]).toEqual([300, 306]);
  expect(await audit()).toMatchObject({ leaves: 306, events: 305, retirements: 1, problemCount: 0 });
  await assertInvariants(db);
  await exportTo("next");
  const proved = await verifyProof(await proofOf(voucher?.id ?? ""), await policyIn("next"), recordHash);
  expect(proved).toMatchObject({ origin: NEXT_ORIGIN, index: old.index });
  await expect(monitor("next")).rejects.toThrow(`The log is now ${NEXT_ORIGIN}, and was ${ORIGIN}.`);
  const monitored = await monitor("next", { keep: true, retired: ORIGIN });
  expect(monitored).toMatchObject({ origin: NEXT_ORIGIN, before: 300, size: 306 });
  expect(await monitor("next")).toMatchObject({ before: 306 });
});

it("a second log retire only exports the retired log again", async () => {
  await retireThree();
  expect(await retire({ directory: at("again") })).toMatchObject({ size: 3, exported: 3, anchorsWritten: [] });
  expect(sha256("again/last-checkpoint")).toBe(sha256("retired/last-checkpoint"));
  expect(await audit()).toMatchObject({ leaves: 4, retirements: 1, problemCount: 0 });
});

it("log retire can export into the directory of an earlier export that was killed", async () => {
  await begin();
  await run();
  mkdirSync(at("retired"));
  writeFileSync(at(`retired/policy.${randomUUID()}.next`), "quor");
  expect(await retire()).toMatchObject({ size: 0, lastSize: 0, exported: 0 });
});

it("log audit finds a change of a retired log's size or last checkpoint", async () => {
  await retireThree();
  await tamper(db, "UPDATE log_retirements SET last_note = 'other'");
  expect((await audit()).problems).toEqual([`leaf 3 is not the last checkpoint of ${ORIGIN}`]);
  await tamper(db, "UPDATE log_retirements SET size = 2");
  expect((await audit()).problems).toContain(`leaf 2 is the end of ${ORIGIN}, but belongs to an event`);
  await tamper(db, "UPDATE log_retirements SET size = 4");
  expect((await audit()).problems).toEqual([
    "leaf 3 belongs to no event",
    `leaf 4 is the end of ${ORIGIN}, but not in the tree`,
  ]);
});

it("log retire changes nothing if one of its conditions is not met", async () => {
  writeFileSync(files.anchor, "");
  await expect(retire()).rejects.toThrow(/has no log/);
  rmSync(files.anchor);
  await begin();
  await expect(retire()).rejects.toThrow(/has served no checkpoint yet/);
  await issue(3);
  await run();
  const state = async () => [await findTlogTree(db), (await findPublished(db))?.note];
  const before = await state();
  mkdirSync(at("full"));
  writeFileSync(at("full/letter"), "mine");
  mkdirSync(at("other"));
  writeFileSync(at("other/policy"), "quorum none\n");
  const refuses = (reason: RegExp, options: Partial<RetireOptions> = {}) =>
    expect(retire(options)).rejects.toThrow(reason);
  await refuses(/This database has the log vouchers.test\/log, not other.test\/log/, { origin: "other.test/log" });
  await refuses(/full is not empty/, { directory: at("full") });
  await refuses(/other is not empty/, { directory: at("other") });
  await refuses(/letter cannot be used/, { directory: at("full/letter") });
  await refuses(/The reason is empty/, { reason: " " });
  const foreign = {
    file: "letter",
    text: await signCheckpoint((await settingsOf(next)).keys[0] as never, { size: 3, root: Buffer.alloc(32) }),
  };
  await refuses(/letter is not a checkpoint of vouchers.test\/log/, { checkpoints: [foreign] });
  const replaceKey = async (origin: string, seed: Buffer) =>
    writeFileSync(next.env.LOG_KEY_FILE, `${await formatSecretKey("log", origin, seed)}\n`);
  const key = readFileSync(next.env.LOG_KEY_FILE);
  await replaceKey(ORIGIN, Buffer.alloc(32, 5));
  await refuses(/must have a key with a new name/);
  await replaceKey(NEXT_ORIGIN, Buffer.alloc(32, 1));
  await refuses(/also signed vouchers.test\/log/);
  writeFileSync(next.env.LOG_KEY_FILE, key);
  writeFileSync(next.anchor, readFileSync(files.anchor));
  await refuses(/The anchor .* is of another log/);
  rmSync(next.anchor);
  await besideTransaction(db, async (worker) => {
    await worker.query("SELECT FROM log_tree FOR NO KEY UPDATE");
    await refuses(/the log is in use/);
  });
  expect(await state()).toEqual(before);
  expect([existsSync(next.anchor), readdirSync(at("full"))]).toEqual([false, ["letter"]]);
  expect(readdirSync(at("other"))).toEqual(["policy"]);
  expect(await run()).toMatchObject({ published: 3, refused: null });
});

it("after log retire, a checkpoint that a worker of the old log publishes is not served", async () => {
  await begin();
  await run();
  const published = await findPublished(db);
  if (published === null) throw new Error("no checkpoint is served");
  const { late } = await besideTransaction(db, async (tx) => {
    await tx.query("SELECT FROM log_tree FOR UPDATE");
    const late = publishCheckpoint(db, { ...published, origin: ORIGIN });
    await untilWaiting(db, 1);
    await tx.query(
      `SET LOCAL session_replication_role = replica;
       UPDATE log_tree SET origin = 'next'; DELETE FROM log_published; COMMIT`,
    );
    return { late };
  });
  expect([await late, await findPublished(db)]).toEqual([false, null]);
});

it("log retire refuses a restored log that lacks its last leaves until the operator accepts the loss", async () => {
  const restore = await beginWithBackup({ kept: 300, lost: 500 });
  await exportTo("copy");
  await monitor("copy");
  await restore();
  expect(await run()).toMatchObject(refused(/has lost a part/));
  await expect(retire()).rejects.toThrow(/has signed 800 leaves, which this database does not have: its tree has 300/);
  expect(await retire({ acceptLoss: true })).toMatchObject({ size: 300, lastSize: 800, exported: 300 });
  await issue(3);
  expect(await run(next)).toMatchObject({ placed: 3, published: 304, refused: null });
  expect(await audit()).toMatchObject({ leaves: 304, events: 303, lost: 0, retirements: 1, problemCount: 0 });
  expect(await leafOf(300)).toBe(sha256("retired/last-checkpoint"));
  expect(readFileSync(at("retired/last-checkpoint"), "utf8")).toMatch(`${ORIGIN}\n800\n`);
  // A partner who has proofs of the lost leaves notices that the next log lacks them.
  await exportTo("next");
  await expect(monitor("next", { retired: ORIGIN })).rejects.toThrow(/has 304 leaves, and had 800/);
});

it("a database from a backup before log retire continues with the next log after two recoveries", async () => {
  const restore = await beginWithBackup({ kept: 10, lost: 5 });
  await retire();
  await issue(3);
  await run(next);
  await exportTo("next");
  await restore();
  expect(await run(next)).toMatchObject({ refused: `The database has the log ${ORIGIN}, not ${NEXT_ORIGIN}.` });

  expect(await recoverFrom("retired")).toMatchObject({ firstIndex: 10, leaves: 5 });
  const last = { file: "last-checkpoint", text: readFileSync(at("retired/last-checkpoint"), "utf8") };
  await retire({ directory: at("again"), checkpoints: [last] });
  expect(sha256("again/last-checkpoint")).toBe(sha256("retired/last-checkpoint"));
  expect(await recoverFrom("next", next)).toMatchObject({ firstIndex: 16, leaves: 3 });
  expect(await run(next)).toMatchObject({ published: 19, refused: null });
  expect(await audit()).toMatchObject({ leaves: 19, events: 10, lost: 8, retirements: 1, problemCount: 0 });
});

it("a `log retire` killed at any statement has changed nothing, or the next run completes it", async () => {
  await begin();
  await issue(10);
  await run();
  const restore = await backUp(db);
  const origins = new Set<string | undefined>();
  for (let hasDied = true, statement = 1; hasDied; statement++) {
    await restore();
    for (const left of [next.anchor, at("retired")]) rmSync(left, { recursive: true, force: true });
    const pool = openServicePool(servers.ownerUrl);
    const sent = await dieAt(pool, statement);
    await retire({}, pool).catch(() => null);
    hasDied = sent() >= statement;
    await pool.end();
    // The server notices only with its next response that the client is gone, and then releases the lock.
    const locked = "SELECT FROM log_tree FOR UPDATE SKIP LOCKED";
    await untilStarted(async () => (await db.query(locked)).rowCount === 1);
    const origin = (await findTlogTree(db))?.origin;
    origins.add(origin);
    if (origin === ORIGIN) {
      expect(existsSync(next.anchor)).toBe(false);
      expect(await run()).toMatchObject({ published: 10, refused: null });
    } else if (!existsSync(next.anchor)) {
      expect(await run(next)).toMatchObject(refused(/No anchor and no witness/));
    }
    expect(await retire()).toMatchObject({ origin: ORIGIN, nextOrigin: NEXT_ORIGIN, size: 10, exported: 10 });
    expect(await leafOf(10)).toBe(sha256("retired/last-checkpoint"));
    expect(await run(next)).toMatchObject({ placed: 0, published: 11, refused: null });
    expect(await audit()).toMatchObject({ leaves: 11, events: 10, retirements: 1, problemCount: 0 });
    await servers.closeOpened();
  }
  expect(origins).toEqual(new Set([ORIGIN, NEXT_ORIGIN]));
});

/** Retires a log of three leaves, and publishes the next one. */
async function retireThree() {
  await begin();
  await issue(3);
  await run();
  await retire();
  expect(await run(next)).toMatchObject({ published: 4, refused: null });
}

const sha256 = (file: string) =>
  createHash("sha256")
    .update(readFileSync(at(file)))
    .digest("hex");

async function retire(options: Partial<RetireOptions> = {}, pool = db) {
  return retireTlog(provisioning(pool), await settingsOf(next), {
    origin: ORIGIN,
    reason: "the key leaked",
    directory: at("retired"),
    acceptLoss: false,
    checkpoints: [{ file: "anchor", text: readFileSync(files.anchor, "utf8") }],
    ...options,
  });
}

/** The data of a leaf. */
async function leafOf(index: number): Promise<string | undefined> {
  const [bundle] = await selectTlogTiles(db, [{ level: 0, index: Math.floor(index / 256) }]);
  const start = (index % 256) * 32;
  return bundle?.hashes.subarray(start, start + 32).toString("hex");
}

const proofOf = (id: string) =>
  readEventProof(
    {
      pool: db,
      publicReads: (_visitor, work) => work(),
      deployment: { serverId: "here" },
      confirmations: openConfirmations({ pool: db, deployment: { serverIdOf: () => "here" } }),
    },
    { visitor: "test" },
    ...([ENTITY_TYPE, id, "1"] as const),
  );
