import { readFileSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { openLogSource } from "#tlog/log-source.ts";
import { readLoggedInOrder } from "../../src/core/chain/db/events.ts";
import { readChainsToSeal, sealChains } from "../../src/core/chain/seal-events.ts";
import { verifyAllChains } from "../../src/core/chain/verify-chains.ts";
import { onSnapshot, readThenWrite } from "../../src/platform/db/transaction.ts";
import { auditTlog } from "../../src/transparency/audit-log.ts";
import { backfillTlog } from "../../src/transparency/backfill-log.ts";
import { findPublished } from "../../src/transparency/db/log-checkpoints.ts";
import { recoverTlog } from "../../src/transparency/recover-log.ts";
import { assertInvariants } from "../support/invariants.ts";
import { backUp, settingsOf, tamper } from "../support/log-setup.ts";
import { besideTransaction } from "../support/outside-transaction.ts";
import { appendPending } from "../support/pending-events.ts";
import { sealVoucher } from "../support/seal-voucher.ts";
import { provisioning } from "../support/supply.ts";
import { useLog } from "../support/use-log.ts";
import { voidVoucher } from "../support/void-voucher.ts";

const { servers, db, files, partner, at, issue, begin, run, audit, exportTo, recoverFrom, monitor, beginWithBackup } =
  useLog();

const claimOne = ({ id }: { id: string }) => appendPending(servers.db, id, 1, new Date());
const refused = (reason: RegExp) => ({ placed: 0, refused: expect.stringMatching(reason) });

const FIRST = "log_slot = (SELECT min(log_slot) FROM voucher_events)";
const LAST = "log_slot = (SELECT max(log_slot) FROM voucher_events)";

it("log audit accepts an intact log and reports every change made to the log", async () => {
  await begin();
  await issue(700);
  await run();
  await issue(5);
  expect(await audit()).toEqual({
    leaves: 700,
    events: 700,
    erased: 0,
    waiting: 5,
    lost: 0,
    retirements: 0,
    anchors: 0,
    witnesses: 0,
    silentWitnesses: 0,
    problemCount: 0,
    problems: [],
  });
  for (const [statement, problem] of TAMPERINGS) {
    const { problems } = await besideTransaction(servers.db, async (tx) => {
      await tx.query(`SET LOCAL session_replication_role = replica; ${statement}`);
      return auditTlog(tx);
    });
    const found = problems.filter((line) => problem.test(line));
    expect(found, `${statement}: ${problems.join("\n")}`).not.toEqual([]);
  }
});

it("log audit finds an event that was cut off the end of a chain", async () => {
  await begin();
  const [cut] = await issue(3);
  if (cut === undefined) throw new Error("no voucher");
  await voidVoucher(provisioning(db), partner.organizationId, cut.code, null);
  await run();
  const verify = () => verifyAllChains({ pool: db });
  expect(await verify()).toMatchObject({ events: 4, broken: [] });
  await tamper(db, `DELETE FROM voucher_events WHERE voucher_id = '${cut.id}' AND sequence = 2`);
  // The voucher's row counts the deleted event, so `chain verify` notices. The owner could change the row too.
  expect((await verify()).broken).toMatchObject([{ voucherId: cut.id, sequence: 2 }]);
  await tamper(
    db,
    `UPDATE vouchers AS v SET status = 'Active', last_sequence = 1, sealed_sequence = 1, sealed_hash = e.record_hash
       FROM voucher_events AS e WHERE v.id = '${cut.id}' AND e.voucher_id = v.id`,
  );
  expect(await verify()).toMatchObject({ events: 3, broken: [] });
  expect((await audit()).problems).toEqual(["leaf 3 belongs to no event"]);
});

it("a restored database's log signs nothing before log recover, and then continues after the lost leaves", async () => {
  const restore = await beginWithBackup({ kept: 300, lost: 500 });
  expect(await exportTo("copy")).toBe(800);
  await restore();
  await issue(20);
  expect(await run()).toMatchObject(refused(/has 800 leaves, the database 300/));
  expect((await findPublished(db))?.size).toBe(300);

  expect(await recoverFrom("copy")).toEqual({
    firstIndex: 300,
    leaves: 500,
    added: 20,
    missing: 0,
    lost: [{ firstIndex: 300, leaves: 500 }],
  });
  await expect(recoverFrom("copy")).rejects.toThrow(/has 820 leaves, the copy's checkpoint 800/);
  expect(await run()).toMatchObject({ placed: 0, size: 820, published: 820, refused: null });
  expect(await audit()).toMatchObject({ leaves: 820, events: 320, lost: 500, problemCount: 0 });
  // Checks that the log still continues the checkpoint from before the restore.
  await exportTo("now");
  await monitor("copy");
  expect(await monitor("now", { keep: true })).toMatchObject({ before: 800, size: 820 });
});

it("a restored database's log keeps the leaf of every remaining event", async () => {
  await begin();
  await issue(300);
  await run();
  const outside = await issueOutside(5);
  const [sealedAlone, sealedTogether, later, ...waiting] = await issue(40);
  if (!sealedAlone || !sealedTogether || !later) throw new Error("no vouchers");
  for (const voucher of [sealedAlone, sealedTogether]) await claimOne(voucher);
  const restore = await backUp(db);
  // Assigns positions in the log to the events that the restore will lose.
  await backfillTlog(provisioning(db), () => undefined);
  for (const { id } of [sealedTogether, sealedAlone]) await sealVoucher({ pool: db }, id);
  await issue(100);
  await run();
  expect(await exportTo("copy")).toBe(447);
  const before = await leavesByEvent();
  await restore();

  // Seals the event again, in one batch with an event that the copy does not have.
  await claimOne(later);
  await sealInOneBatch([sealedTogether.id, later.id]);
  await issue(20);
  expect(await run()).toMatchObject(refused(/has 447 leaves, the database 300/));
  expect(await recoverFrom("copy")).toEqual({
    firstIndex: 300,
    leaves: 147,
    added: 21,
    missing: 0,
    lost: [{ firstIndex: 347, leaves: 100 }],
  });
  expect(await run()).toMatchObject({ placed: 0, size: 468, published: 468, refused: null });
  expect(await audit()).toMatchObject({
    leaves: 468,
    events: 368,
    waiting: 0,
    lost: 100,
    retirements: 0,
    problems: [],
  });
  const after = await leavesByEvent();
  const kept = [...waiting, ...outside, sealedAlone, sealedTogether, later].map(({ id }) => `${id} 1`);
  for (const event of [...kept, `${sealedAlone.id} 2`, `${sealedTogether.id} 2`])
    expect([event, after.get(event)]).toEqual([event, before.get(event)]);
  expect(after.get(`${later.id} 2`)).toBe(447);
  expect(await exportTo("now")).toBe(468);
  await assertInvariants(db);
  // Checks that the log accepts later events.
  await issue(3);
  expect(await run()).toMatchObject({ placed: 3, published: 471 });
  await assertInvariants(db);
});

it("log recover without an anchor file recovers a database's log up to the copy's checkpoint", async () => {
  const restore = await beginWithBackup({ kept: 10, lost: 10 });
  await exportTo("copy");
  await restore();
  const settings = { ...(await settingsOf(files)), anchors: [] };
  const recover = (directory: string) => recoverTlog(provisioning(db), settings, openLogSource(directory));
  await expect(recover(files.directory)).rejects.toThrow(/Neither an anchor nor the copy/);
  expect(await recover(at("copy"))).toMatchObject({ leaves: 10 });
  expect(await run()).toMatchObject({ published: 20, refused: null });
});

it("log recover recovers a restored database's log from an old copy, and later from a newer copy", async () => {
  const restore = await beginWithBackup({ kept: 10, lost: 10 });
  await exportTo("behind");
  await issue(7);
  await run();
  await exportTo("newest");
  await restore();
  await issue(5);
  expect(await recoverFrom("behind")).toEqual({
    firstIndex: 10,
    leaves: 10,
    added: 0,
    missing: 7,
    lost: [{ firstIndex: 10, leaves: 10 }],
  });
  expect(await audit()).toMatchObject({ leaves: 20, events: 10, waiting: 5, lost: 10, problemCount: 0 });
  expect(await run()).toMatchObject(refused(/has 27 leaves, the database 20/));
  await expect(recoverFrom("behind")).rejects.toThrow(/has 20 leaves, the copy's checkpoint 20/);
  expect(await recoverFrom("newest")).toMatchObject({ firstIndex: 20, leaves: 7, added: 5, missing: 0 });
  expect(await run()).toMatchObject({ published: 32, refused: null });
  await assertInvariants(db);
});

it("log recover refuses a copy of the log that has another leaf than the restored database", async () => {
  const restore = await beginWithBackup({ kept: 10, lost: 10 });
  await exportTo("copy");
  await restore();
  const bundle = at("copy/tile/entries/000.p/20");
  writeFileSync(bundle, readFileSync(bundle).fill(7, 15 * 34 + 2, 15 * 34 + 9));
  await expect(recoverFrom("copy")).rejects.toThrow(/does not continue this database's log/);
  await expect(recoverFrom(".")).rejects.toThrow(/has no bundle 0/);
  expect(await audit()).toMatchObject({ leaves: 10, problemCount: 0 });
});

/** Issues vouchers whose events are outside of the log, like events from before the log began. */
async function issueOutside(count: number) {
  const outside = await issue(count);
  await tamper(
    db,
    `UPDATE voucher_events SET log_slot = NULL WHERE voucher_id = ANY ('{${outside.map(({ id }) => id)}}')`,
    "DELETE FROM log_batches WHERE first_index IS NULL",
  );
  return outside;
}

async function sealInOneBatch(voucherIds: string[]) {
  await readThenWrite(
    servers.db,
    (tx) => readChainsToSeal(tx, voucherIds),
    async (unsealed) => sealChains(voucherIds, unsealed),
  );
}

async function leavesByEvent(): Promise<Map<string, number | null>> {
  const leaves = new Map<string, number | null>();
  await onSnapshot(servers.db, async (tx) => {
    for await (const events of readLoggedInOrder(tx))
      for (const { voucherId, sequence, logIndex } of events) leaves.set(`${voucherId} ${sequence}`, logIndex);
  });
  return leaves;
}

/** Changes of a log of 700 leaves with five waiting events, each with what the audit then reports. */
const TAMPERINGS: [statement: string, problem: RegExp][] = [
  [
    "DELETE FROM voucher_events WHERE log_slot & 4095 = 3 AND log_slot >> 12 = (SELECT min(id) FROM log_batches)",
    /^leaf 3 belongs to no event$/,
  ],
  [
    `DELETE FROM voucher_events AS e USING log_batches AS b
      WHERE b.id = e.log_slot >> 12 AND b.first_index + (e.log_slot & 4095) = 699`,
    /^leaf 699 belongs to no event$/,
  ],
  [
    `UPDATE voucher_events SET payload = '{}', record_hash = sha256('{}') WHERE sequence = 1 AND ${FIRST}`,
    /has another hash than leaf 0$/,
  ],
  [
    `UPDATE voucher_events SET log_slot = (SELECT min(log_slot) FROM voucher_events)
      WHERE log_slot = (SELECT min(log_slot) + 1 FROM voucher_events)`,
    /shares leaf 0|has another hash/,
  ],
  [`UPDATE voucher_events SET log_slot = NULL WHERE ${FIRST}`, /is not in the log; see voucherctl log backfill$/],
  [
    "UPDATE log_bundles SET entries = overlay(entries placing sha256('x') from 1) WHERE index = 1",
    /tile 1\/0 is not that/,
  ],
  ["UPDATE log_tiles SET hashes = overlay(hashes placing sha256('x') from 1)", /^tile 1\/0 is not that of the leaves$/],
  ["DELETE FROM log_bundles WHERE index = 2", /^bundle 2 is missing or too short$/],
  [
    `DELETE FROM vouchers WHERE id = (SELECT min(id) FROM vouchers);
     DELETE FROM voucher_events WHERE voucher_id NOT IN (SELECT id FROM vouchers)`,
    /^leaf 0 belongs to no event$/,
  ],
  [
    `INSERT INTO log_batches (id, first_index, leaves) VALUES (999, 700, 1); UPDATE log_tree SET size = 701;
     UPDATE log_bundles SET entries = entries || sha256('x') WHERE index = 2`,
    /^leaf 700 belongs to no event$/,
  ],
  [
    `UPDATE log_tree SET size = 701;
     UPDATE log_bundles SET entries = entries || (SELECT record_hash FROM voucher_events WHERE ${FIRST})
      WHERE index = 2`,
    /^leaf 700 belongs to no event$/,
  ],
  [
    `UPDATE voucher_events SET log_slot = 999 << 12 WHERE ${FIRST}`,
    /^event 1 of .* waits for its position in the log with another hash$/,
  ],
  [
    `UPDATE voucher_events SET payload = '{}', record_hash = sha256('{}') WHERE ${LAST}`,
    /^event 1 of .* waits for its position in the log with another hash$/,
  ],
  [`DELETE FROM voucher_events WHERE ${LAST}`, /^5 leaves wait for their place, and 4 events$/],
  ["INSERT INTO log_lost VALUES (4, 1, now())", /^leaf 4 is noted as lost, but belongs to an event$/],
  ["INSERT INTO log_lost VALUES (700, 9000000000000000, now())", /is noted as lost, but not in the tree$/],
  ["UPDATE log_tree SET root = sha256('x')", /stored root is not that/],
  ["UPDATE log_published SET root = sha256('x')", /^the served checkpoint has another root$/],
  ["UPDATE log_published SET size = 701", /^the served checkpoint has 701 leaves, the tree 700$/],
];
