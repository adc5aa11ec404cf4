import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { type LogSource, openLogSource, SourceUnavailable } from "#tlog/log-source.ts";
import { cosignNote, type SignerKey } from "#tlog/note.ts";
import { parsePolicy } from "#tlog/policy.ts";
import { TreeAppender } from "#tlog/tree.ts";
import { ANCHOR_NAMESPACE } from "../../src/core/chain/chain.ts";
import { auditServedTlog } from "../../src/transparency/audit-served-log.ts";
import { backfillTlog } from "../../src/transparency/backfill-log.ts";
import { assertInvariants } from "../support/invariants.ts";
import { tamper, tlogKey, witnessKeys } from "../support/log-setup.ts";
import { signCheckpoint } from "../support/sign-checkpoint.ts";
import { provisioning } from "../support/supply.ts";
import { useLog } from "../support/use-log.ts";
import { VECTORS_FILE, type VectorChain, type Vectors } from "../support/write-vectors.ts";

const { db, at, issue, begin, run, audit, exportTo, policyIn, monitor } = useLog();

const read = (name: string) => readFileSync(at(name));
const write = (name: string, content: string | Uint8Array) => writeFileSync(at(name), content);
const [w2, w3] = witnessKeys as [SignerKey, SignerKey];

it("log audit --url accepts an export, and reports every changed tile, leaf or checkpoint", async () => {
  await begin();
  await issue(700);
  await run();
  await exportTo("copy");
  const policy = await policyIn("copy");
  const log = openLogSource(at("copy"));
  const { rows } = await db.query(
    `SELECT voucher_id AS id, encode(record_hash, 'hex') AS hash FROM voucher_events WHERE log_slot & 4095 = 3 LIMIT 1`,
  );
  const [event] = rows;
  const history = (logIndex: number | null, hasMore = false) =>
    serveHistory({ voucherId: event.id, recordHash: event.hash, logIndex, hasMore });
  const served = (histories = history(3)) => auditServedTlog({ log, histories, policy, vouchers: [event.id] });
  expect(await served()).toEqual({
    origin: "vouchers.test/log",
    leaves: 700,
    tiles: 4,
    events: 1,
    waiting: 0,
    problemCount: 0,
    problems: [],
    cosignedAge: null,
  });
  expect((await served(history(4))).problems).toEqual([`event 1 of ${event.id} has another hash than leaf 4`]);
  expect((await served(history(700))).problems).toEqual([
    `event 1 of ${event.id} names leaf 700, which the checkpoint does not cover`,
  ]);
  expect(await served(history(null))).toMatchObject({ events: 0, waiting: 1, problemCount: 0 });
  expect((await served(history(3, true))).problems).toEqual([
    `event 1 of ${event.id} does not follow event 1`,
    `event 1 of ${event.id} shares leaf 3 with another event`,
  ]);
  const change = async (path: string) => {
    const whole = read(`copy/${path}`);
    write(`copy/${path}`, Buffer.from(whole).fill(whole.readUInt8(9) ^ 1, 9, 10));
    const { problems } = await served();
    write(`copy/${path}`, whole);
    return problems;
  };
  for (const path of ["tile/0/001", "tile/0/002.p/188", "tile/1/000.p/2"])
    expect(await change(path)).toEqual([`${path} is not that of the leaves`]);
  expect(await change("tile/entries/001")).toEqual([
    "tile/0/001 is not that of the leaves",
    "tile/1/000.p/2 is not that of the leaves",
    "the leaves do not lead to the checkpoint's root",
  ]);
  write("copy/checkpoint", await signCheckpoint(tlogKey, { size: 700, root: Buffer.alloc(32, 7) }));
  expect((await served()).problems).toEqual(["the leaves do not lead to the checkpoint's root"]);
  write("copy/checkpoint", await signCheckpoint(w2, { size: 700, root: Buffer.alloc(32) }));
  await expect(served()).rejects.toThrow(/The policy has no log/);
});

/** Serves the history of a voucher. Every page contains the same single event. */
function serveHistory(of: {
  voucherId: string;
  recordHash: string;
  logIndex: number | null;
  hasMore: boolean;
}): LogSource {
  const { voucherId, recordHash, logIndex, hasMore } = of;
  const time = "2026-09-01T06:00:00.000Z";
  const event = {
    sequence: 1,
    eventType: "voucher.instance.issued",
    code: "VCH001",
    sealStatus: "Sealed",
    occurredAt: time,
    recordHash,
    logIndex,
    previousHash: "0".repeat(64),
  };
  return serveEvents(voucherId, [event], hasMore);
}

/** Serves the public history of a voucher with these events. */
function serveEvents(entityId: string, events: object[], hasMore = false): LogSource {
  const entity = { entityType: "VoucherInstance", entityId, anchorNamespace: ANCHOR_NAMESPACE };
  const history = { ...entity, hasMore, canonPreservedSinceUtc: "2026-09-01T06:00:00.000Z", events };
  return { from: "histories", read: async () => Buffer.from(JSON.stringify(history)) };
}

const { chains, broken }: Vectors = JSON.parse(readFileSync(VECTORS_FILE, "utf8"));

it("log audit --url reports a sealed event after a pending event, and a pending event with a hash", async () => {
  await begin();
  await issue(1);
  await run();
  await exportTo("copy");
  const policy = await policyIn("copy");
  const log = openLogSource(at("copy"));
  const find = async ({ entityId, events }: VectorChain) => {
    const histories = serveEvents(
      entityId,
      events.map((event) => ({ ...event, logIndex: null })),
    );
    const { problems } = await auditServedTlog({ log, histories, policy, vouchers: [entityId] });
    return problems[0]?.replace(entityId, "it");
  };
  for (const chain of chains) expect(await find(chain), chain.name).toBeUndefined();
  // The public history has no payloads, so it cannot show faults in them.
  const misplaced = broken.filter(
    ({ name, expected }) => expected.finding === "sealStatus" && !/ has a payload/.test(name),
  );
  expect(misplaced.length).toBeGreaterThan(4);
  for (const chain of misplaced) {
    const says = / (is sealed after one that is not|is Pending and has a hash)$/;
    expect(await find(chain), chain.name).toMatch(new RegExp(`^event ${chain.expected.sequence} of it${says.source}`));
  }
  const past = misplaced[0] as VectorChain;
  const unlinked = past.events.map((event) => (event.sequence === 3 ? { ...event, previousHash: null } : event));
  expect(await find({ ...past, events: unlinked })).toBe("event 3 of it is sealed after one that is not");
  const hashless = past.events.map((event) =>
    event.sequence === 2 ? { ...event, sealStatus: "Sealed" as const } : event,
  );
  expect(await find({ ...past, events: hashless })).toBe("event 2 of it is sealed and has no hash");
});

it("log export fails if the database lacks a tile, and writes no checkpoint", async () => {
  await begin();
  await issue(300);
  await run();
  await tamper(db, "DELETE FROM log_bundles WHERE index = 1");
  await expect(exportTo("copy")).rejects.toThrow(/tile 0\/1 is missing/);
  expect(readdirSync(at("copy"))).not.toContain("checkpoint");
});

it("log backfill adds events from before the log exactly once, even after an interruption", async () => {
  await issue(5_000);
  await tamper(db, "UPDATE voucher_events SET log_slot = NULL", "DELETE FROM log_batches");
  await issue(10);
  let rounds = 0;
  const interrupted = backfillTlog(provisioning(db), () => {
    rounds += 1;
    throw new Error("interrupted");
  });
  await expect(interrupted).rejects.toThrow("interrupted");
  expect(rounds).toBe(1);
  await backfillTlog(provisioning(db), () => undefined);
  expect(await backfillTlog(provisioning(db), () => undefined)).toBe(0);
  await begin();
  await run();
  expect(await audit()).toMatchObject({ leaves: 5_010, events: 5_010, problemCount: 0 });
  await assertInvariants(db);
});

const refusals = () => readdirSync(at("seen")).filter((name) => name.startsWith("refused"));

/** Exports the log with 300 leaves as `small`, and with 600 as `large`. */
async function exportTwice() {
  await begin();
  for (const name of ["small", "large"]) {
    await issue(300);
    await run();
    await exportTo(name);
  }
}

it("log monitor refuses a log that shrinks, forks or is renamed, and stores the proof of a fork", async () => {
  await exportTwice();
  expect(await monitor("small", { keep: true })).toMatchObject({ size: 300, before: 0, cosignedAge: null });
  expect(await monitor("large", { keep: true })).toMatchObject({ size: 600, before: 300 });
  expect(await monitor("large")).toMatchObject({ size: 600, before: 600 });
  await expect(monitor("small")).rejects.toThrow(/has 300 leaves, and had 600/);
  const fork = await signCheckpoint(tlogKey, { size: 600, root: Buffer.alloc(32, 7) });
  write("large/checkpoint", fork.replace("vouchers.test/log\n", "vouchers.test/other\n"));
  await expect(monitor("large")).rejects.toThrow(/has no log vouchers.test\/other/);
  expect(refusals()).toEqual([]);
  write("large/checkpoint", fork);
  await expect(monitor("large")).rejects.toThrow(/has another root for 600 leaves/);
  expect(refusals()).toEqual(["refused-600"]);
  expect(read("seen/refused-600").toString()).toBe(fork);
});

it("log monitor proves a fork from a larger tree's tiles, but does not report damage as a fork", async () => {
  await exportTwice();
  const fork = new TreeAppender(0, []);
  fork.append(Buffer.alloc(300 * 32, 7));
  mkdirSync(at("seen"));
  write("seen/checkpoint", await signCheckpoint(tlogKey, { size: 300, root: fork.root() }));
  await expect(monitor("large")).rejects.toThrow(/of 600 leaves does not continue the one of 300/);
  expect(refusals()).toEqual(["refused-600"]);
  rmSync(at("seen/refused-600"));
  write("large/tile/0/002.p/88", read("large/tile/0/002.p/88").fill(9, 0, 3));
  await expect(monitor("large")).rejects.toThrow(/do not lead to its checkpoint's root/);
  const trouble = createServer((_, response) => response.writeHead(503).end("<html>busy</html>"));
  await new Promise<void>((resolve) => trouble.listen(0, "127.0.0.1", resolve));
  const source = openLogSource(`http://127.0.0.1:${(trouble.address() as AddressInfo).port}`);
  await expect(monitor("large", { source })).rejects.toThrow(SourceUnavailable);
  trouble.close();
  expect(refusals()).toEqual([]);
});

it("log monitor stores only entry bundles that the checkpoint proves, and replaces a damaged bundle", async () => {
  await exportTwice();
  for (const path of ["tile/entries/001", "tile/entries/002.p/88"]) {
    const good = read(`large/${path}`);
    write(`large/${path}`, Buffer.from(good).fill(7, 2, 9));
    await expect(monitor("large", { keep: true })).rejects.toThrow(/do not lead to its checkpoint's root/);
    expect(existsSync(at(`seen/${path}`))).toBe(false);
    write(`large/${path}`, good);
  }
  await monitor("large", { keep: true });
  const whole = read("large/tile/entries/001");
  for (const damaged of [Buffer.from(whole).fill(7, 2, 9), whole.subarray(0, 99), Buffer.alloc(0)]) {
    write("seen/tile/entries/001", damaged);
    await monitor("large", { keep: true });
    expect(read("seen/tile/entries/001")).toEqual(whole);
  }
  expect(refusals()).toEqual([]);
});

it("log monitor explains that its saved checkpoint is damaged, and changes nothing", async () => {
  await exportTwice();
  await monitor("small");
  const kept = read("seen/checkpoint").toString();
  const otherRoot = kept.replace(/\n300\n./, (text) => `${text.slice(0, -1)}${text.endsWith("A") ? "B" : "A"}`);
  for (const damaged of ["", kept.slice(0, 60), otherRoot]) {
    write("seen/checkpoint", damaged);
    await expect(monitor("large")).rejects.toThrow(/is damaged.*Restore it from a backup.*move it away/);
    expect(read("seen/checkpoint").toString()).toBe(damaged);
  }
  expect(refusals()).toEqual([]);
});

it("log monitor and log audit refuse a checkpoint whose newest cosignature is too old", async () => {
  await exportTwice();
  const checkpoint = read("small/checkpoint").toString();
  const text = checkpoint.slice(0, checkpoint.indexOf("\n\n") + 1);
  const now = Math.floor(Date.now() / 1_000);
  const cosign = async (age: number) => {
    const lines = [await cosignNote(w2, text, now - 100_000), await cosignNote(w3, text, now - age)];
    write("small/checkpoint", `${checkpoint}${lines.join("\n")}\n`);
  };
  const policy = await parsePolicy(`log ${tlogKey.text}\nwitness w1 ${w2.text}\nwitness w2 ${w3.text}\nquorum w1\n`);
  const log = openLogSource(at("small"));
  const checks = [
    (maxAge?: number) => monitor("small", { policy, ...(maxAge && { maxAge }) }),
    (maxAge?: number) => auditServedTlog({ log, histories: log, policy, vouchers: [], maxAge }),
  ];
  for (const check of checks) {
    await cosign(50);
    expect(Math.abs(((await check()).cosignedAge ?? 0) - 75)).toBeLessThanOrEqual(25);
    await cosign(90_000);
    await expect(check()).rejects.toThrow(/newest cosignature is 9\d{4} seconds old, more than 86400/);
    expect((await check(200_000)).cosignedAge).toBeGreaterThanOrEqual(90_000);
  }
});
