import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findPublished } from "../../src/db/log-checkpoints.ts";
import { onSnapshot } from "../../src/db/transaction.ts";
import { ANCHOR_NAMESPACE } from "../../src/domain/chain.ts";
import type { SignerKey } from "../../src/domain/log/note.ts";
import { parsePolicy } from "../../src/domain/log/policy.ts";
import { auditLog } from "../../src/services/log/audit-log.ts";
import { auditServedLog } from "../../src/services/log/audit-served-log.ts";
import { backfillLog } from "../../src/services/log/backfill-log.ts";
import { exportLog } from "../../src/services/log/export-log.ts";
import { type LogSource, openLogSource } from "../../src/services/log/log-source.ts";
import { monitorLog } from "../../src/services/log/monitor-log.ts";
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

describe("log audit --url", () => {
  it("finds no problem in an export, and reports every changed tile, leaf or checkpoint", async () => {
    await beginLog(servers.db, files);
    await issue(700);
    await run();
    const copy = join(files.directory, "copy");
    await exportLog(servers.db, copy);
    const policy = parsePolicy(String((await findPublished(servers.db))?.policy));
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
    writeFileSync(join(copy, "checkpoint"), signCheckpoint(logKey, { size: 700, root: Buffer.alloc(32, 7) }));
    expect((await served()).problems).toEqual(["the leaves do not lead to the checkpoint's root"]);
    writeFileSync(
      join(copy, "checkpoint"),
      signCheckpoint(witnessKeys[0] as SignerKey, { size: 700, root: Buffer.alloc(32) }),
    );
    await expect(served()).rejects.toThrow(/The policy has no log/);
  });
});

describe("log export", () => {
  it("fails, and writes no checkpoint, when a tile is missing", async () => {
    await beginLog(servers.db, files);
    await issue(300);
    await run();
    await tamper(servers.db, "DELETE FROM log_bundles WHERE index = 1");
    const copy = join(files.directory, "copy");
    await expect(exportLog(servers.db, copy)).rejects.toThrow(/tile 0\/1 is missing/);
    expect(readdirSync(copy)).not.toContain("checkpoint");
  });
});

describe("log backfill", () => {
  it("adds the events that were sealed before the log began, once, and can be interrupted and continued", async () => {
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
});

describe("log monitor", () => {
  it("refuses a log that shrinks or forks and keeps the evidence, and refuses a log of another name", async () => {
    await beginLog(servers.db, files);
    await issue(300);
    await run();
    const [small, large] = [join(files.directory, "small"), join(files.directory, "large")];
    await exportLog(servers.db, small);
    await issue(300);
    await run();
    await exportLog(servers.db, large);
    const policy = parsePolicy(String((await findPublished(servers.db))?.policy));
    const state = join(files.directory, "seen");
    const monitor = (from: string, keep = false) =>
      monitorLog({ source: openLogSource(from), policy, state, keep, receipts: [] });
    expect(await monitor(small, true)).toMatchObject({ size: 300, before: 0 });
    expect(await monitor(large, true)).toMatchObject({ size: 600, before: 300 });
    expect(await monitor(large)).toMatchObject({ size: 600, before: 600 });
    await expect(monitor(small)).rejects.toThrow(/has 300 leaves, and had 600/);
    const fork = signCheckpoint(logKey, { size: 600, root: Buffer.alloc(32, 7) });
    writeFileSync(join(large, "checkpoint"), fork);
    await expect(monitor(large)).rejects.toThrow(/does not continue the one of 600 leaves/);
    expect(readdirSync(state).filter((name) => name.startsWith("refused"))).toEqual(["refused-300", "refused-600"]);
    expect(readFileSync(join(state, "refused-600"), "utf8")).toBe(fork);
    writeFileSync(join(large, "checkpoint"), fork.replace("vouchers.test/log\n", "vouchers.test/other\n"));
    await expect(monitor(large)).rejects.toThrow(/has no log vouchers.test\/other/);
  });
});
