import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type LogSource, openLogSource, SourceUnavailable } from "../../packages/tlog/src/log-source.ts";
import { monitorLog } from "../../packages/tlog/src/monitor.ts";
import { cosignNote, type SignerKey } from "../../packages/tlog/src/note.ts";
import { type Policy, parsePolicy } from "../../packages/tlog/src/policy.ts";
import { TreeAppender } from "../../packages/tlog/src/tree.ts";
import { findPublished } from "../../src/db/log-checkpoints.ts";
import { onSnapshot } from "../../src/db/transaction.ts";
import { ANCHOR_NAMESPACE } from "../../src/domain/chain.ts";
import { auditLog } from "../../src/services/log/audit-log.ts";
import { auditServedLog } from "../../src/services/log/audit-served-log.ts";
import { backfillLog } from "../../src/services/log/backfill-log.ts";
import { exportLog } from "../../src/services/log/export-log.ts";
import { assertInvariants } from "../support/invariants.ts";
import {
  beginLog,
  type LogFiles,
  logKey,
  makeLogFiles,
  openSequencer,
  tamper,
  witnessKeys,
} from "../support/log-setup.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { signCheckpoint } from "../support/sign-checkpoint.ts";
import { issueVouchers, makePartner, provisioning, type TestPartner } from "../support/supply.ts";

let servers: TestServers;
let files: LogFiles;
let partner: TestPartner;

beforeEach(async () => {
  servers = await openTestServers();
  files = makeLogFiles();
  partner = await makePartner(servers.db);
});

afterEach(async () => {
  await servers.close();
  files.remove();
});

const issue = (count: number) => issueVouchers(servers.db, partner, count);
const run = () => openSequencer(servers, files).run();

it("log audit --url finds no problem in an export, and reports every changed tile, leaf or checkpoint", async () => {
  await beginLog(servers.db, files);
  await issue(700);
  await run();
  const copy = join(files.directory, "copy");
  await exportLog(servers.db, copy);
  const policy = await parsePolicy(String((await findPublished(servers.db))?.policy));
  const log = openLogSource(copy);
  const [event] = (
    await servers.db.query(
      `SELECT voucher_id AS id, encode(record_hash, 'hex') AS hash, (log_slot & 4095)::int AS leaf FROM voucher_events
          WHERE log_slot & 4095 = 3 LIMIT 1`,
    )
  ).rows;
  const history = (logIndex: number | null, recordHash = event.hash, hasMore = false): LogSource => ({
    from: "histories",
    read: async () =>
      Buffer.from(
        JSON.stringify({
          ...{ entityType: "VoucherInstance", entityId: event.id, anchorNamespace: ANCHOR_NAMESPACE, hasMore },
          canonPreservedSinceUtc: "2026-09-01T06:00:00.000Z",
          events: [
            {
              ...{ sequence: 1, eventType: "voucher.instance.issued", code: "VCH001", sealStatus: "Sealed" },
              ...{ occurredAt: "2026-09-01T06:00:00.000Z", recordHash, logIndex, previousHash: "0".repeat(64) },
            },
          ],
        }),
      ),
  });
  const served = (histories = history(3)) => auditServedLog({ log, histories, policy, vouchers: [event.id] });
  expect(await served()).toEqual({
    ...{ origin: "vouchers.test/log", leaves: 700, tiles: 4, events: 1, waiting: 0, problemCount: 0, problems: [] },
    cosignedAge: null,
  });
  expect((await served(history(4))).problems).toEqual([`event 1 of ${event.id} has another hash than leaf 4`]);
  expect((await served(history(700))).problems).toEqual([
    `event 1 of ${event.id} names leaf 700, which the checkpoint does not cover`,
  ]);
  expect(await served(history(null))).toMatchObject({ events: 0, waiting: 1, problemCount: 0 });
  expect((await served(history(3, event.hash, true))).problems).toEqual([
    `event 1 of ${event.id} does not follow event 1`,
    `event 1 of ${event.id} shares leaf 3 with another event`,
  ]);
  const change = async (path: string, byte: number) => {
    const [file, whole] = [join(copy, path), readFileSync(join(copy, path))];
    writeFileSync(file, Buffer.from(whole).fill(whole.readUInt8(byte) ^ 1, byte, byte + 1));
    const { problems } = await served();
    writeFileSync(file, whole);
    return problems;
  };
  expect(await change("tile/0/001", 9)).toEqual(["tile/0/001 is not that of the leaves"]);
  expect(await change("tile/0/002.p/188", 9)).toEqual(["tile/0/002.p/188 is not that of the leaves"]);
  expect(await change("tile/1/000.p/2", 9)).toEqual(["tile/1/000.p/2 is not that of the leaves"]);
  expect(await change("tile/entries/001", 9)).toEqual([
    "tile/0/001 is not that of the leaves",
    "tile/1/000.p/2 is not that of the leaves",
    "the leaves do not lead to the checkpoint's root",
  ]);
  writeFileSync(join(copy, "checkpoint"), await signCheckpoint(logKey, { size: 700, root: Buffer.alloc(32, 7) }));
  expect((await served()).problems).toEqual(["the leaves do not lead to the checkpoint's root"]);
  writeFileSync(
    join(copy, "checkpoint"),
    await signCheckpoint(witnessKeys[0] as SignerKey, { size: 700, root: Buffer.alloc(32) }),
  );
  await expect(served()).rejects.toThrow(/The policy has no log/);
});

it("log export fails, and writes no checkpoint, when a tile is missing", async () => {
  await beginLog(servers.db, files);
  await issue(300);
  await run();
  await tamper(servers.db, "DELETE FROM log_bundles WHERE index = 1");
  const copy = join(files.directory, "copy");
  await expect(exportLog(servers.db, copy)).rejects.toThrow(/tile 0\/1 is missing/);
  expect(readdirSync(copy)).not.toContain("checkpoint");
});

it("log backfill adds the events that were sealed before the log began, once, and can be interrupted and continued", async () => {
  await issue(5_000);
  await tamper(servers.db, "UPDATE voucher_events SET log_slot = NULL", "DELETE FROM log_batches");
  await issue(10);
  let rounds = 0;
  const interrupted = backfillLog(provisioning(servers.db), () => {
    rounds += 1;
    throw new Error("interrupted");
  });
  await expect(interrupted).rejects.toThrow("interrupted");
  expect(rounds).toBe(1);
  await backfillLog(provisioning(servers.db), () => undefined);
  expect(await backfillLog(provisioning(servers.db), () => undefined)).toBe(0);
  await beginLog(servers.db, files);
  await run();
  expect(await onSnapshot(servers.db, auditLog)).toMatchObject({ leaves: 5_010, events: 5_010, problemCount: 0 });
  await assertInvariants(servers.db);
});

describe("log monitor", () => {
  let state: string;
  let policy: Policy;
  const at = (name: string) => join(files.directory, name);
  const monitor = (from: string, more: Partial<Parameters<typeof monitorLog>[0]> = {}) =>
    monitorLog({ source: openLogSource(from), policy, state, keep: false, receipts: [], ...more });
  const refused = () => readdirSync(state).filter((name) => name.startsWith("refused"));

  /** Exports the log with 300 leaves as `small`, and with 600 as `large`. */
  async function exportTwice() {
    state = at("seen");
    await beginLog(servers.db, files);
    for (const name of ["small", "large"]) {
      await issue(300);
      await run();
      await exportLog(servers.db, at(name));
    }
    policy = await parsePolicy(String((await findPublished(servers.db))?.policy));
  }

  it("log monitor refuses a log that shrinks, forks or changes its name, and keeps only a proven contradiction as evidence", async () => {
    await exportTwice();
    expect(await monitor(at("small"), { keep: true })).toMatchObject({ size: 300, before: 0, cosignedAge: null });
    expect(await monitor(at("large"), { keep: true })).toMatchObject({ size: 600, before: 300 });
    expect(await monitor(at("large"))).toMatchObject({ size: 600, before: 600 });
    await expect(monitor(at("small"))).rejects.toThrow(/has 300 leaves, and had 600/);
    const fork = await signCheckpoint(logKey, { size: 600, root: Buffer.alloc(32, 7) });
    writeFileSync(join(at("large"), "checkpoint"), fork.replace("vouchers.test/log\n", "vouchers.test/other\n"));
    await expect(monitor(at("large"))).rejects.toThrow(/has no log vouchers.test\/other/);
    expect(refused()).toEqual([]);
    writeFileSync(join(at("large"), "checkpoint"), fork);
    await expect(monitor(at("large"))).rejects.toThrow(/has another root for 600 leaves/);
    expect(refused()).toEqual(["refused-600"]);
    expect(readFileSync(join(state, "refused-600"), "utf8")).toBe(fork);
  });

  it("log monitor proves a fork from the tiles of a larger tree, and does not take damaged tiles or a server in trouble for one", async () => {
    await exportTwice();
    const leaves = Buffer.alloc(300 * 32, 7);
    const fork = new TreeAppender(0, []);
    fork.append(leaves);
    mkdirSync(state);
    writeFileSync(join(state, "checkpoint"), await signCheckpoint(logKey, { size: 300, root: fork.root() }));
    await expect(monitor(at("large"))).rejects.toThrow(/of 600 leaves does not continue the one of 300/);
    expect(refused()).toEqual(["refused-600"]);
    rmSync(join(state, "refused-600"));
    const tile = join(at("large"), "tile/0/002.p/88");
    writeFileSync(tile, readFileSync(tile).fill(9, 0, 3));
    await expect(monitor(at("large"))).rejects.toThrow(/do not lead to its checkpoint's root/);
    const trouble = createServer((_, response) => response.writeHead(503).end("<html>busy</html>"));
    await new Promise<void>((resolve) => trouble.listen(0, "127.0.0.1", resolve));
    const { port } = trouble.address() as AddressInfo;
    await expect(monitor(`http://127.0.0.1:${port}`)).rejects.toThrow(SourceUnavailable);
    trouble.close();
    expect(refused()).toEqual([]);
  });

  it("log monitor stores no bundle that the checkpoint does not prove, and replaces a damaged one at the next run", async () => {
    await exportTwice();
    const bundle = (directory: string, name: string) => join(directory, "tile/entries", name);
    const whole = readFileSync(bundle(at("large"), "001"));
    for (const name of ["001", "002.p/88"]) {
      const good = readFileSync(bundle(at("large"), name));
      writeFileSync(bundle(at("large"), name), Buffer.from(good).fill(7, 2, 9));
      await expect(monitor(at("large"), { keep: true })).rejects.toThrow(/do not lead to its checkpoint's root/);
      expect(existsSync(bundle(state, name))).toBe(false);
      writeFileSync(bundle(at("large"), name), good);
    }
    await monitor(at("large"), { keep: true });
    for (const damaged of [Buffer.from(whole).fill(7, 2, 9), whole.subarray(0, 99), Buffer.alloc(0)]) {
      writeFileSync(bundle(state, "001"), damaged);
      await monitor(at("large"), { keep: true });
      expect(readFileSync(bundle(state, "001"))).toEqual(whole);
    }
    expect(refused()).toEqual([]);
  });

  it("log monitor reports a damaged checkpoint of its own with the way out, and changes nothing", async () => {
    await exportTwice();
    await monitor(at("small"));
    const file = join(state, "checkpoint");
    const kept = readFileSync(file, "utf8");
    const otherRoot = kept.replace(/\n300\n./, (text) => `${text.slice(0, -1)}${text.endsWith("A") ? "B" : "A"}`);
    for (const damaged of ["", kept.slice(0, 60), otherRoot]) {
      writeFileSync(file, damaged);
      await expect(monitor(at("large"))).rejects.toThrow(/is damaged.*Restore it from a backup.*move it away/);
      expect(readFileSync(file, "utf8")).toBe(damaged);
    }
    expect(refused()).toEqual([]);
  });

  it("log monitor refuses a checkpoint whose newest cosignature is older than the limit, and an audit does so too", async () => {
    await exportTwice();
    const checkpoint = readFileSync(join(at("small"), "checkpoint"), "utf8");
    const text = checkpoint.slice(0, checkpoint.indexOf("\n\n") + 1);
    const now = Math.floor(Date.now() / 1_000);
    const cosigned = async (...ages: number[]) => {
      const lines = ages.map((age, index) => cosignNote(witnessKeys[index] as SignerKey, text, now - age));
      writeFileSync(join(at("small"), "checkpoint"), `${checkpoint}${(await Promise.all(lines)).join("\n")}\n`);
    };
    const [one, two] = witnessKeys;
    policy = await parsePolicy(`log ${logKey.text}\nwitness w1 ${one?.text}\nwitness w2 ${two?.text}\nquorum w1\n`);
    const log = openLogSource(at("small"));
    const audit = (maxAge?: number) => auditServedLog({ log, histories: log, policy, vouchers: [], maxAge });
    await cosigned(100_000, 50);
    const { cosignedAge } = await monitor(at("small"));
    expect([cosignedAge, (await audit()).cosignedAge].every((age) => age !== null && age >= 50 && age < 100)).toBe(
      true,
    );
    await cosigned(100_000, 90_000);
    for (const check of [() => monitor(at("small")), () => audit()]) {
      await expect(check()).rejects.toThrow(/newest cosignature is 9\d{4} seconds old, more than 86400/);
    }
    expect(await monitor(at("small"), { maxAge: 200_000 })).toMatchObject({ size: 300 });
    expect(await audit(200_000)).toMatchObject({ leaves: 300, problemCount: 0 });
  });
});
