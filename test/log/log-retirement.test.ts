import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openLogSource } from "../../packages/tlog/src/log-source.ts";
import { monitorLog } from "../../packages/tlog/src/monitor.ts";
import { formatSecretKey } from "../../packages/tlog/src/note.ts";
import { parsePolicy } from "../../packages/tlog/src/policy.ts";
import { verifyProof } from "../../packages/tlog/src/receipt.ts";
import { findPublished, publishCheckpoint } from "../../src/db/log-checkpoints.ts";
import { findLogTree, selectLogTiles } from "../../src/db/log-tree.ts";
import { onSnapshot } from "../../src/db/transaction.ts";
import { ENTITY_TYPE } from "../../src/domain/chain.ts";
import { auditLog } from "../../src/services/log/audit-log.ts";
import { auditServedLog } from "../../src/services/log/audit-served-log.ts";
import { exportLog } from "../../src/services/log/export-log.ts";
import { readEventProof } from "../../src/services/log/read-receipt.ts";
import { recoverLog } from "../../src/services/log/recover-log.ts";
import { type RetireOptions, retireLog } from "../../src/services/log/retire-log.ts";
import { assertInvariants } from "../support/invariants.ts";
import {
  beginLog,
  beginWithBackup,
  type LogFiles,
  makeLogFiles,
  makeNextLogFiles,
  NEXT_ORIGIN,
  ORIGIN,
  openSequencer,
  settingsOf,
  startWitness,
  tamper,
} from "../support/log-setup.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { signCheckpoint } from "../support/sign-checkpoint.ts";
import { issueVouchers, makePartner, provisioning, type TestPartner } from "../support/supply.ts";
import { untilStarted } from "../support/until.ts";

let servers: TestServers;
let files: LogFiles;
let next: LogFiles;
let partner: TestPartner;

beforeEach(async () => {
  servers = await openTestServers();
  files = makeLogFiles();
  next = makeNextLogFiles();
  partner = await makePartner(servers.db);
});

afterEach(async () => {
  await servers.close();
  files.remove();
  next.remove();
});

const issue = (count: number) => issueVouchers(servers.db, partner, count);
const run = (of = files) => openSequencer(servers, of).run();
const audit = () => onSnapshot(servers.db, auditLog);
const at = (name: string) => join(files.directory, name);
const sha256 = (file: string) => createHash("sha256").update(readFileSync(file)).digest("hex");

async function retire(options: Partial<RetireOptions> = {}) {
  const usual = { origin: ORIGIN, reason: "the key leaked", directory: at("retired"), acceptLoss: false };
  return retireLog(provisioning(servers.db), await settingsOf(next), {
    ...{ ...usual, checkpoints: [{ file: "anchor", text: readFileSync(files.anchor, "utf8") }] },
    ...options,
  });
}

/** The data of a leaf. */
async function leafOf(index: number): Promise<string | undefined> {
  const [bundle] = await selectLogTiles(servers.db, [{ level: 0, index: Math.floor(index / 256) }]);
  const start = (index % 256) * 32;
  return bundle?.hashes.subarray(start, start + 32).toString("hex");
}

const proofOf = (id: string) =>
  readEventProof({ pool: servers.db, publicReads: (work) => work() }, ENTITY_TYPE, id, "1");

const policyIn = (directory: string) => parsePolicy(readFileSync(join(directory, "policy"), "utf8"));

it("a log that is retired is continued by the next one with the same leaves, and its receipts stay valid under its own policy", async () => {
  const { url, state } = await startWitness(servers, files);
  files.setWitnesses([url]);
  next.setWitnesses([url]);
  await beginLog(servers.db, files);
  const [voucher] = await issue(300);
  await run();
  const before = await findPublished(servers.db);
  const receipt = await proofOf(voucher?.id ?? "");
  const seen = at("seen");
  const source = openLogSource(at("retired"));
  await exportLog(servers.db, at("retired"));
  const policy = await policyIn(at("retired"));
  await monitorLog({ source, policy, state: seen, keep: true, receipts: [] });
  await issue(5);

  expect(await retire()).toEqual({
    ...{ origin: ORIGIN, nextOrigin: NEXT_ORIGIN, size: 300, lastSize: 300, exported: 300 },
    anchorsWritten: [next.anchor],
  });
  // The retired log proves what it proved, with nothing but its export.
  expect(readFileSync(at("retired/checkpoint"), "utf8")).toBe(before?.note);
  const { rows } = await servers.db.query("SELECT record_hash FROM voucher_events WHERE voucher_id = $1", [
    voucher?.id,
  ]);
  const recordHash: Buffer = rows[0]?.record_hash;
  const old = await verifyProof(receipt, await policyIn(at("retired")), recordHash);
  expect(old).toMatchObject({ origin: ORIGIN, size: 300 });
  expect(await auditServedLog({ log: source, histories: source, policy, vouchers: [] })).toMatchObject({
    ...{ origin: ORIGIN, leaves: 300, problemCount: 0 },
  });
  // Both logs have signed its end, and the next one has it as a leaf.
  const last = readFileSync(at("retired/last-checkpoint"), "utf8");
  expect(last).toContain(`\n— ${ORIGIN} `);
  expect(last).toContain(`\n— ${NEXT_ORIGIN} `);
  expect(await leafOf(300)).toBe(sha256(at("retired/last-checkpoint")));
  // A worker that still has the old key signs nothing.
  const anchor = readFileSync(files.anchor, "utf8");
  expect(await run()).toMatchObject({
    placed: 0,
    refused: `The database has the log ${NEXT_ORIGIN}, not ${ORIGIN}.`,
  });
  expect([await findPublished(servers.db), readFileSync(files.anchor, "utf8")]).toEqual([null, anchor]);
  await expect(proofOf(voucher?.id ?? "")).rejects.toThrow(expect.objectContaining({ code: "not_logged_yet" }));

  expect(await run(next)).toMatchObject({ placed: 5, size: 306, published: 306, cosigned: 1, refused: null });
  expect([state().size, JSON.parse(readFileSync(at("witness-0"), "utf8"))[NEXT_ORIGIN].size]).toEqual([300, 306]);
  expect(await audit()).toMatchObject({ leaves: 306, events: 305, retirements: 1, problemCount: 0 });
  await assertInvariants(servers.db);
  await exportLog(servers.db, at("next"));
  const nextPolicy = await policyIn(at("next"));
  expect(await verifyProof(await proofOf(voucher?.id ?? ""), nextPolicy, recordHash)).toMatchObject({
    ...{ origin: NEXT_ORIGIN, index: old.index },
  });
  const monitor = (retired?: string) =>
    monitorLog({
      source: openLogSource(at("next")),
      policy: nextPolicy,
      state: seen,
      keep: true,
      receipts: [],
      retired,
    });
  await expect(monitor()).rejects.toThrow(`The log is now ${NEXT_ORIGIN}, and was ${ORIGIN}.`);
  expect(await monitor(ORIGIN)).toMatchObject({ origin: NEXT_ORIGIN, before: 300, size: 306 });
  expect(await monitor()).toMatchObject({ before: 306 });

  // Again: only another export.
  expect(await retire({ directory: at("again") })).toMatchObject({ size: 300, exported: 300, anchorsWritten: [] });
  expect(sha256(at("again/last-checkpoint"))).toBe(sha256(at("retired/last-checkpoint")));
  expect(await audit()).toMatchObject({ leaves: 306, retirements: 1, problemCount: 0 });
  // An audit sees a changed end.
  await tamper(servers.db, "UPDATE log_retirements SET last_note = 'other'");
  expect((await audit()).problems).toEqual([`leaf 300 is not the last checkpoint of ${ORIGIN}`]);
  await tamper(servers.db, "UPDATE log_retirements SET size = 299");
  expect((await audit()).problems).toContain(`leaf 299 is the end of ${ORIGIN}, but belongs to an event`);
  await tamper(servers.db, "UPDATE log_retirements SET size = 306");
  expect((await audit()).problems).toEqual([
    "leaf 300 belongs to no event",
    `leaf 306 is the end of ${ORIGIN}, but not in the tree`,
  ]);
});

it("a log that is retired is not retired, and nothing changes, when something is wrong", async () => {
  writeFileSync(files.anchor, "");
  await expect(retire()).rejects.toThrow(/has no log/);
  rmSync(files.anchor);
  await beginLog(servers.db, files);
  await expect(retire()).rejects.toThrow(/has served no checkpoint yet/);
  await issue(3);
  await run();
  const before = [await findLogTree(servers.db), await findPublished(servers.db).then((served) => served?.note)];
  mkdirSync(at("full"));
  writeFileSync(at("full/letter"), "mine");
  mkdirSync(at("other"));
  writeFileSync(at("other/policy"), "quorum none\n");
  const refused = async (reason: RegExp, options: Partial<RetireOptions> = {}) =>
    expect(retire(options)).rejects.toThrow(reason);
  await refused(/This database has the log vouchers.test\/log, not other.test\/log/, { origin: "other.test/log" });
  await refused(/full is not empty/, { directory: at("full") });
  await refused(/other is not empty/, { directory: at("other") });
  await refused(/letter cannot be used/, { directory: at("full/letter") });
  await refused(/The reason is empty/, { reason: " " });
  const foreign = {
    file: "letter",
    text: await signCheckpoint((await settingsOf(next)).keys[0] as never, { size: 3, root: Buffer.alloc(32) }),
  };
  await refused(/letter is not a checkpoint of vouchers.test\/log/, { checkpoints: [foreign] });
  const replaceKey = async (origin: string, seed: Buffer) =>
    writeFileSync(next.env.LOG_KEY_FILE, `${await formatSecretKey("log", origin, seed)}\n`);
  const key = readFileSync(next.env.LOG_KEY_FILE);
  await replaceKey(ORIGIN, Buffer.alloc(32, 5));
  await refused(/must have a key with a new name/);
  await replaceKey(NEXT_ORIGIN, Buffer.alloc(32, 1));
  await refused(/also signed vouchers.test\/log/);
  writeFileSync(next.env.LOG_KEY_FILE, key);
  writeFileSync(next.anchor, readFileSync(files.anchor));
  await refused(/The anchor .* is of another log/);
  rmSync(next.anchor);
  const worker = await servers.db.connect();
  await worker.query("BEGIN; SELECT FROM log_tree FOR NO KEY UPDATE");
  await refused(/the log is in use/);
  await worker.query("ROLLBACK");
  worker.release();
  expect([await findLogTree(servers.db), await findPublished(servers.db).then((served) => served?.note)]).toEqual(
    before,
  );
  expect([existsSync(next.anchor), readdirSync(at("full")), readdirSync(at("other"))]).toEqual([
    false,
    ["letter"],
    ["policy"],
  ]);
  expect(await run()).toMatchObject({ published: 3, refused: null });
});

it("a log that is retired serves no checkpoint that its worker signed before it saw the retirement", async () => {
  await beginLog(servers.db, files);
  await run();
  const published = await findPublished(servers.db);
  if (published === null) throw new Error("no checkpoint is served");
  const tx = await servers.db.connect();
  await tx.query("BEGIN; SELECT FROM log_tree FOR UPDATE");
  const late = publishCheckpoint(servers.db, { ...published, origin: ORIGIN });
  await untilStarted(async () => {
    const { rowCount } = await servers.db.query(
      "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
    );
    return rowCount === 1;
  });
  await tx.query(
    "SET LOCAL session_replication_role = replica; UPDATE log_tree SET origin = 'next'; DELETE FROM log_published; COMMIT",
  );
  tx.release();
  expect([await late, await findPublished(servers.db)]).toEqual([false, null]);
});

it("a restored database whose lost leaves no copy has is retired only when the loss is accepted, and the next log records the end", async () => {
  const restore = await beginWithBackup(servers, files, partner, { kept: 300, lost: 500 });
  const state = at("seen");
  await exportLog(servers.db, at("copy"));
  await monitorLog({
    source: openLogSource(at("copy")),
    policy: await policyIn(at("copy")),
    state,
    keep: false,
    receipts: [],
  });
  await restore();
  expect(await run()).toMatchObject({ refused: expect.stringMatching(/has lost a part/) });
  await expect(retire()).rejects.toThrow(/has signed 800 leaves, which this database does not have: its tree has 300/);
  expect(await retire({ acceptLoss: true })).toMatchObject({ size: 300, lastSize: 800, exported: 300 });
  await issue(3);
  expect(await run(next)).toMatchObject({ placed: 3, published: 304, refused: null });
  expect(await audit()).toMatchObject({ leaves: 304, events: 303, lost: 0, retirements: 1, problemCount: 0 });
  expect(await leafOf(300)).toBe(sha256(at("retired/last-checkpoint")));
  expect(readFileSync(at("retired/last-checkpoint"), "utf8")).toMatch(`${ORIGIN}\n800\n`);
  // A partner who saw the lost leaves sees that the next log does not have them.
  await exportLog(servers.db, at("next"));
  const monitored = monitorLog({
    ...{ source: openLogSource(at("next")), policy: await policyIn(at("next")), state },
    ...{ keep: false, receipts: [], retired: ORIGIN },
  });
  await expect(monitored).rejects.toThrow(/has 304 leaves, and had 800/);
});

it("a restored database from before the retirement goes on with the next log, when both are recovered and the first is retired again", async () => {
  const restore = await beginWithBackup(servers, files, partner, { kept: 10, lost: 5 });
  await retire();
  await issue(3);
  await run(next);
  await exportLog(servers.db, at("next"));
  await restore();
  expect(await run(next)).toMatchObject({ refused: `The database has the log ${ORIGIN}, not ${NEXT_ORIGIN}.` });

  const recover = async (of: LogFiles, copy: string) =>
    recoverLog(provisioning(servers.db), await settingsOf(of), openLogSource(at(copy)));
  expect(await recover(files, "retired")).toMatchObject({ firstIndex: 10, leaves: 5 });
  const last = { file: "last-checkpoint", text: readFileSync(at("retired/last-checkpoint"), "utf8") };
  await retire({ directory: at("again"), checkpoints: [last] });
  expect(sha256(at("again/last-checkpoint"))).toBe(sha256(at("retired/last-checkpoint")));
  expect(await recover(next, "next")).toMatchObject({ firstIndex: 16, leaves: 3 });
  expect(await run(next)).toMatchObject({ published: 19, refused: null });
  expect(await audit()).toMatchObject({ leaves: 19, events: 10, lost: 8, retirements: 1, problemCount: 0 });
});
