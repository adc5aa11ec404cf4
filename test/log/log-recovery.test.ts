import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openLogSource } from "../../packages/tlog/src/log-source.ts";
import { monitorLog } from "../../packages/tlog/src/monitor.ts";
import { parsePolicy } from "../../packages/tlog/src/policy.ts";
import { readLoggedInOrder } from "../../src/db/events.ts";
import { findPublished } from "../../src/db/log-checkpoints.ts";
import { onSnapshot, readThenWrite } from "../../src/db/transaction.ts";
import { voidVoucher } from "../../src/services/admin/void-voucher.ts";
import { readUnsealed, sealChains, sealVoucher } from "../../src/services/chain/seal-events.ts";
import { verifyAllChains } from "../../src/services/chain/verify-chains.ts";
import { auditLog, type LogAudit } from "../../src/services/log/audit-log.ts";
import { backfillLog } from "../../src/services/log/backfill-log.ts";
import { exportLog } from "../../src/services/log/export-log.ts";
import { recoverLog } from "../../src/services/log/recover-log.ts";
import { assertInvariants } from "../support/invariants.ts";
import {
  backUp,
  beginLog,
  beginWithBackup,
  type LogFiles,
  makeLogFiles,
  openSequencer,
  settingsOf,
  tamper,
} from "../support/log-setup.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { issueVouchers, makePartner, provisioning, type TestPartner } from "../support/supply.ts";

let servers: TestServers;
let files: LogFiles;
let partner: TestPartner;

async function open() {
  servers = await openTestServers();
  files = makeLogFiles();
  partner = await makePartner(servers.db);
}

async function close() {
  await servers.close();
  files.remove();
}

const issue = (count: number) => issueVouchers(servers.db, partner, count);
const run = () => openSequencer(servers, files).run();
const audit = () => onSnapshot(servers.db, auditLog);

/** The leaf of each event, by voucher and sequence. */
async function leavesByEvent(): Promise<Map<string, number | null>> {
  const leaves = new Map<string, number | null>();
  await onSnapshot(servers.db, async (tx) => {
    for await (const events of readLoggedInOrder(tx))
      for (const { voucherId, sequence, logIndex } of events) leaves.set(`${voucherId} ${sequence}`, logIndex);
  });
  return leaves;
}

describe("log audit", () => {
  beforeAll(async () => {
    await open();
    await beginLog(servers.db, files);
    await issue(700);
    await run();
    await issue(5);
  });
  afterAll(close);

  /** Audits the log after a tampering, and then undoes it. */
  async function auditTampered(statement: string): Promise<LogAudit> {
    const tx = await servers.db.connect();
    try {
      await tx.query(`BEGIN; SET LOCAL session_replication_role = replica; ${statement}`);
      return await auditLog(tx);
    } finally {
      await tx.query("ROLLBACK");
      tx.release();
    }
  }

  it("log audit finds nothing wrong in a log, and counts what waits", async () => {
    expect(await audit()).toEqual({
      leaves: 700,
      events: 700,
      waiting: 5,
      lost: 0,
      retirements: 0,
      ...{ anchors: 0, witnesses: 0, silentWitnesses: 0 },
      problemCount: 0,
      problems: [],
    });
  });

  it.each<[string, string, RegExp]>([
    [
      "a deleted event",
      "DELETE FROM voucher_events WHERE log_slot & 4095 = 3 AND log_slot >> 12 = (SELECT min(id) FROM log_batches)",
      /^leaf 3 belongs to no event$/,
    ],
    [
      "a deleted last event",
      "DELETE FROM voucher_events AS e USING log_batches AS b WHERE b.id = e.log_slot >> 12 AND b.first_index + (e.log_slot & 4095) = 699",
      /^leaf 699 belongs to no event$/,
    ],
    [
      "a rewritten event",
      "UPDATE voucher_events SET payload = '{}', record_hash = sha256('{}') WHERE sequence = 1 AND log_slot = (SELECT min(log_slot) FROM voucher_events)",
      /has another hash than leaf 0$/,
    ],
    [
      "two events in one leaf",
      "UPDATE voucher_events SET log_slot = (SELECT min(log_slot) FROM voucher_events) WHERE log_slot = (SELECT min(log_slot) + 1 FROM voucher_events)",
      /shares leaf 0|has another hash/,
    ],
    [
      "an event outside of the log",
      "UPDATE voucher_events SET log_slot = NULL WHERE log_slot = (SELECT min(log_slot) FROM voucher_events)",
      /is not in the log; see voucherctl log backfill$/,
    ],
    [
      "a changed bundle",
      "UPDATE log_bundles SET entries = overlay(entries placing sha256('x') from 1) WHERE index = 1",
      /tile 1\/0 is not that/,
    ],
    [
      "a changed tile",
      "UPDATE log_tiles SET hashes = overlay(hashes placing sha256('x') from 1)",
      /^tile 1\/0 is not that of the leaves$/,
    ],
    ["a missing bundle", "DELETE FROM log_bundles WHERE index = 2", /^bundle 2 is missing or too short$/],
    [
      "a deleted voucher with its history",
      "DELETE FROM vouchers WHERE id = (SELECT min(id) FROM vouchers); DELETE FROM voucher_events WHERE voucher_id NOT IN (SELECT id FROM vouchers)",
      /^leaf 0 belongs to no event$/,
    ],
    [
      "a leaf without an event",
      `INSERT INTO log_batches (id, first_index, leaves) VALUES (999, 700, 1); UPDATE log_tree SET size = 701;
       UPDATE log_bundles SET entries = entries || sha256('x') WHERE index = 2`,
      /^leaf 700 belongs to no event$/,
    ],
    [
      "an event with two leaves",
      `UPDATE log_tree SET size = 701; UPDATE log_bundles
          SET entries = entries || (SELECT record_hash FROM voucher_events WHERE log_slot = (SELECT min(log_slot) FROM voucher_events)) WHERE index = 2`,
      /^leaf 700 belongs to no event$/,
    ],
    [
      "an event in a batch that does not exist",
      "UPDATE voucher_events SET log_slot = 999 << 12 WHERE log_slot = (SELECT min(log_slot) FROM voucher_events)",
      /^event 1 of .* waits for its place in the log with another hash$/,
    ],
    [
      "a waiting event with another hash",
      "UPDATE voucher_events SET payload = '{}', record_hash = sha256('{}') WHERE log_slot = (SELECT max(log_slot) FROM voucher_events)",
      /^event 1 of .* waits for its place in the log with another hash$/,
    ],
    [
      "a waiting leaf without its event",
      "DELETE FROM voucher_events WHERE log_slot = (SELECT max(log_slot) FROM voucher_events)",
      /^5 leaves wait for their place, and 4 events$/,
    ],
    [
      "an event that is noted as lost",
      "INSERT INTO log_lost VALUES (4, 1, now())",
      /^leaf 4 is noted as lost, but belongs to an event$/,
    ],
    [
      "lost leaves outside of the tree",
      "INSERT INTO log_lost VALUES (700, 9000000000000000, now())",
      /is noted as lost, but not in the tree$/,
    ],
    ["a changed root", "UPDATE log_tree SET root = sha256('x')", /stored root is not that/],
    ["a changed checkpoint", "UPDATE log_published SET root = sha256('x')", /^the served checkpoint has another root$/],
    [
      "a larger checkpoint",
      "UPDATE log_published SET size = 701",
      /^the served checkpoint has 701 leaves, the tree 700$/,
    ],
  ])("log audit finds %s", async (_, statement, problem) => {
    const { problems } = await auditTampered(statement);
    expect(
      problems.some((line) => problem.test(line)),
      problems.join("\n"),
    ).toBe(true);
  });
});

describe("an event that is cut off the end of a chain", () => {
  beforeEach(open);
  afterEach(close);

  it("an event that is cut off the end of a chain is found by log audit, although the chain alone looks complete", async () => {
    await beginLog(servers.db, files);
    const [cut] = await issue(3);
    if (cut === undefined) throw new Error("no voucher");
    await voidVoucher(provisioning(servers.db), partner.organizationId, cut.code, null);
    await sealVoucher({ pool: servers.db }, cut.id);
    await run();
    const verify = () => verifyAllChains({ pool: servers.db }, () => undefined);
    expect(await verify()).toMatchObject({ events: 4, broken: [] });
    await tamper(servers.db, `DELETE FROM voucher_events WHERE voucher_id = '${cut.id}' AND sequence = 2`);
    // Chain verify sees that the voucher counts one more event; an operator can change that too.
    expect((await verify()).broken).toMatchObject([{ voucherId: cut.id, sequence: 2 }]);
    await tamper(
      servers.db,
      `UPDATE vouchers AS v SET status = 'Active', last_sequence = 1, sealed_sequence = 1, sealed_hash = e.record_hash
         FROM voucher_events AS e WHERE v.id = '${cut.id}' AND e.voucher_id = v.id`,
    );
    expect(await verify()).toMatchObject({ events: 3, broken: [] });
    expect((await audit()).problems).toEqual(["leaf 3 belongs to no event"]);
  });
});

describe("a database that was restored from an older backup", () => {
  beforeEach(open);
  afterEach(close);

  it("a database that was restored from an older backup signs nothing until the log is recovered from an export, and then continues after the lost leaves", async () => {
    const restore = await beginWithBackup(servers, files, partner, { kept: 300, lost: 500 });
    const lastNote = (await findPublished(servers.db))?.note;
    const copy = join(files.directory, "copy");
    expect(await exportLog(servers.db, copy)).toBe(800);
    await restore();
    await issue(20);
    expect(await run()).toMatchObject({
      placed: 0,
      refused: expect.stringMatching(/has 800 leaves, the database 300/),
    });
    expect((await findPublished(servers.db))?.size).toBe(300);

    const source = openLogSource(copy);
    const settings = await settingsOf(files);
    expect(await recoverLog(provisioning(servers.db), settings, source)).toEqual({
      ...{ firstIndex: 300, leaves: 500, added: 20, missing: 0 },
      lost: [{ firstIndex: 300, leaves: 500 }],
    });
    await expect(recoverLog(provisioning(servers.db), settings, source)).rejects.toThrow(
      /has 820 leaves, the copy's checkpoint 800/,
    );
    expect(await run()).toMatchObject({ placed: 0, size: 820, published: 820, refused: null });
    expect(await audit()).toMatchObject({ leaves: 820, events: 320, lost: 500, problemCount: 0 });
    // What was published before the restore is still a part of the log.
    const state = join(files.directory, "seen");
    const now = join(files.directory, "now");
    await exportLog(servers.db, now);
    const policy = await parsePolicy(String((await findPublished(servers.db))?.policy));
    await monitorLog({ source: openLogSource(copy), policy, state, keep: false, receipts: [] });
    const seen = await monitorLog({ source: openLogSource(now), policy, state, keep: true, receipts: [] });
    expect([lastNote === undefined, seen.before, seen.size]).toEqual([false, 800, 820]);
  });

  it("a database that was restored from an older backup keeps the leaf of every event that it still has, whether it waited, was outside of the log or Pending at the backup", async () => {
    await beginLog(servers.db, files);
    await issue(300);
    await run();
    const outside = await issue(5);
    await tamper(
      servers.db,
      `UPDATE voucher_events SET log_slot = NULL WHERE voucher_id = ANY ('{${outside.map(({ id }) => id)}}')`,
      "DELETE FROM log_batches WHERE first_index IS NULL",
    );
    const [sealedAlone, sealedTogether, later, ...waiting] = await issue(40);
    const { organizationId } = partner;
    const voidOne = ({ code }: { code: string }) => voidVoucher(provisioning(servers.db), organizationId, code, null);
    if (!sealedAlone || !sealedTogether || !later) throw new Error("no vouchers");
    for (const voucher of [sealedAlone, sealedTogether]) await voidOne(voucher);
    const restore = await backUp(servers.db);
    // What the restore loses: all of these events, and more, get their places.
    await backfillLog(provisioning(servers.db), () => undefined);
    for (const { id } of [sealedTogether, sealedAlone]) await sealVoucher({ pool: servers.db }, id);
    await issue(100);
    await run();
    const copy = join(files.directory, "copy");
    expect(await exportLog(servers.db, copy)).toBe(447);
    const before = await leavesByEvent();
    await restore();

    // Sealed again, in one batch with an event that the copy does not have.
    await voidOne(later);
    const together = [sealedTogether.id, later.id];
    await readThenWrite(
      servers.db,
      (tx) => readUnsealed(tx, together),
      async (unsealed) => sealChains(together, unsealed),
    );
    await issue(20);
    expect(await run()).toMatchObject({
      placed: 0,
      refused: expect.stringMatching(/has 447 leaves, the database 300/),
    });
    const recovered = await recoverLog(provisioning(servers.db), await settingsOf(files), openLogSource(copy));
    expect(recovered).toEqual({
      firstIndex: 300,
      leaves: 147,
      added: 21,
      lost: [{ firstIndex: 347, leaves: 100 }],
      missing: 0,
    });
    expect(await run()).toMatchObject({ placed: 0, size: 468, published: 468, refused: null });
    expect(await audit()).toMatchObject({
      ...{ leaves: 468, events: 368, waiting: 0, lost: 100 },
      ...{ retirements: 0, problemCount: 0, problems: [] },
    });
    const after = await leavesByEvent();
    const kept = [...waiting, ...outside, sealedAlone, sealedTogether, later].map(({ id }) => `${id} 1`);
    for (const event of [...kept, `${sealedAlone.id} 2`, `${sealedTogether.id} 2`])
      expect([event, after.get(event)]).toEqual([event, before.get(event)]);
    expect(after.get(`${later.id} 2`)).toBe(447);
    expect(await exportLog(servers.db, join(files.directory, "now"))).toBe(468);
    await assertInvariants(servers.db);
    // What happens next is in the log as before.
    await issue(3);
    expect(await run()).toMatchObject({ placed: 3, published: 471 });
    await assertInvariants(servers.db);
  });

  it("a database that was restored from an older backup is recovered without an anchor, up to the checkpoint of the copy", async () => {
    const restore = await beginWithBackup(servers, files, partner, { kept: 10, lost: 10 });
    const copy = join(files.directory, "copy");
    await exportLog(servers.db, copy);
    await restore();
    const settings = { ...(await settingsOf(files)), anchors: [] };
    await expect(recoverLog(provisioning(servers.db), settings, openLogSource(files.directory))).rejects.toThrow(
      /Neither an anchor nor the copy/,
    );
    expect(await recoverLog(provisioning(servers.db), settings, openLogSource(copy))).toMatchObject({ leaves: 10 });
    expect(await run()).toMatchObject({ published: 20, refused: null });
  });

  it("a database that was restored from an older backup is recovered up to the checkpoint of a copy that is behind the anchor, and then from a newer copy", async () => {
    const restore = await beginWithBackup(servers, files, partner, { kept: 10, lost: 10 });
    const [behind, newest] = [join(files.directory, "behind"), join(files.directory, "newest")];
    await exportLog(servers.db, behind);
    await issue(7);
    await run();
    await exportLog(servers.db, newest);
    await restore();
    await issue(5);
    const recover = async (copy: string) =>
      recoverLog(provisioning(servers.db), await settingsOf(files), openLogSource(copy));
    expect(await recover(behind)).toEqual({
      ...{ firstIndex: 10, leaves: 10, added: 0, missing: 7, lost: [{ firstIndex: 10, leaves: 10 }] },
    });
    expect(await audit()).toMatchObject({ leaves: 20, events: 10, waiting: 5, lost: 10, problemCount: 0 });
    expect(await run()).toMatchObject({ placed: 0, refused: expect.stringMatching(/has 27 leaves, the database 20/) });
    await expect(recover(behind)).rejects.toThrow(/has 20 leaves, the copy's checkpoint 20/);
    expect(await recover(newest)).toMatchObject({ firstIndex: 20, leaves: 7, added: 5, missing: 0 });
    expect(await run()).toMatchObject({ published: 32, refused: null });
    await assertInvariants(servers.db);
  });

  it("a database that was restored from an older backup is not recovered from a copy with another leaf", async () => {
    const restore = await beginWithBackup(servers, files, partner, { kept: 10, lost: 10 });
    const copy = join(files.directory, "copy");
    await exportLog(servers.db, copy);
    await restore();
    const bundle = join(copy, "tile/entries/000.p/20");
    writeFileSync(bundle, readFileSync(bundle).fill(7, 15 * 34 + 2, 15 * 34 + 9));
    const recover = recoverLog(provisioning(servers.db), await settingsOf(files), openLogSource(copy));
    await expect(recover).rejects.toThrow(/does not continue this database's log/);
    await expect(
      recoverLog(provisioning(servers.db), await settingsOf(files), openLogSource(files.directory)),
    ).rejects.toThrow(/has no bundle 0/);
    expect(await audit()).toMatchObject({ leaves: 10, problemCount: 0 });
  });
});
