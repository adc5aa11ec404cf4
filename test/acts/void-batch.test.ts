import pg from "pg";
import { expect, it } from "vitest";
import { erasePerson } from "../../src/acts/erase-person.ts";
import { voidBatch } from "../../src/acts/void-batch.ts";
import { recordExpiries } from "../../src/core/chain/record-expiries.ts";
import { type Reply, untilDecided } from "../support/client.ts";
import { besideTransaction, bypassTriggers, lockRows, untilWaiting } from "../support/outside-transaction.ts";
import { findBatchOf } from "../support/recorded.ts";
import { issueVouchers, provisioning } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const { servers, partner, till } = useService();

it("voidBatch voids Active vouchers, ends their reservations and counts vouchers that are already final", async () => {
  const { batchId, vouchers } = await issueBatch(1_010, { windows: { claim: { opensAt: null, closesAt: null } } });
  const [used, held] = vouchers;
  if (used === undefined || held === undefined) throw new Error("no vouchers");
  expect(await till.redeem({ code: used.code, externalRef: "void-1" })).toMatchObject({ status: 200 });
  const { ticket } = (await till.reserve(held.code)).body;
  const ranges: number[][] = [];
  const result = await voidAll(batchId, (done, total) => void ranges.push([done, total]));
  expect(result).toEqual({ voided: 1_009, alreadyFinal: 1 });
  expect(ranges.at(-1)).toEqual([1_010, 1_010]);
  expect(ranges.length).toBeGreaterThan(1);
  expect(await countByStatus(batchId)).toEqual({ Redeemed: 1, Voided: 1_009 });
  const { rows } = await servers.db.query(
    `SELECT count(*)::int AS sealed FROM voucher_events AS e JOIN vouchers AS v ON v.id = e.voucher_id
        WHERE v.batch_id = $1 AND e.event_type = 'voucher.instance.voided' AND e.seal_status = 'Sealed'
          AND e.payload::json #>> '{data,reason}' = 'printed twice'`,
    [batchId],
  );
  expect(rows).toEqual([{ sealed: 1_009 }]);
  const ended = await servers.db.query("SELECT state, end_reason FROM reservations WHERE ticket = $1", [ticket]);
  expect(ended.rows).toEqual([{ state: "Released", end_reason: "voided" }]);
  expect(await till.redeem({ code: held.code, externalRef: "void-2" })).toMatchObject({
    body: { code: "voucher_voided" },
  });
  // Each transaction has its own audit entry, with the number of vouchers that it voided.
  expect((await voidedCounts(batchId)).reduce((sum, count) => sum + count, 0)).toBe(1_009);
  expect(await voidAll(batchId)).toEqual({ voided: 0, alreadyFinal: 1_010 });
});

it("voidBatch and erasures skip and count vouchers with a broken chain, and the sweeper skips them", async () => {
  const { batchId, vouchers } = await issueBatch(6);
  const [beyond = "", ahead = ""] = vouchers.map(({ id }) => id);
  await servers.db.query(
    `INSERT INTO voucher_events (occurred_at, sequence, voucher_id, seal_status, event_type, data)
     VALUES (now(), 2, $1, 'Pending', 'voucher.instance.voided', '{}')`,
    [beyond],
  );
  // The voucher's row says that event 2 is its last, but there is no event 2.
  await bypassTriggers(servers.db, "UPDATE vouchers SET last_sequence = 2 WHERE id = $1", [ahead]);
  expect(await voidAll(batchId)).toEqual({ voided: 4, alreadyFinal: 0, damaged: 2 });
  expect(await voidAll(batchId)).toEqual({ voided: 0, alreadyFinal: 4, damaged: 2 });
  const erased = await erasePerson(provisioning(servers.db), { by: "voucher", voucherId: beyond }, null);
  expect(erased).toEqual({ vouchers: 0, events: 0, references: 0, damaged: 1 });
  const past = "UPDATE batches SET valid_until = now() - interval '1 second' WHERE id = $1";
  await bypassTriggers(servers.db, past, [batchId]);
  const recorded = await recordExpiries(provisioning(servers.db), performance.now(), [batchId]);
  expect(recorded).toBe(0);
  const { rows } = await servers.db.query("SELECT expiry_recorded_to FROM batches WHERE id = $1", [batchId]);
  expect(rows).toEqual([{ expiry_recorded_to: 6 }]);
  // Repairs the chains like a restore, so that the invariants hold again.
  await bypassTriggers(servers.db, "DELETE FROM voucher_events WHERE voucher_id = $1 AND sequence = 2", [beyond]);
  await bypassTriggers(servers.db, "UPDATE vouchers SET last_sequence = 1 WHERE id = $1", [ahead]);
});

it("an interrupted voidBatch keeps the vouchers that it voided, and the next run voids the rest", async () => {
  const { batchId } = await issueBatch(1_010);
  const interrupt = () => {
    throw new Error("interrupted");
  };
  await expect(voidAll(batchId, interrupt)).rejects.toThrow("interrupted");
  const { Voided: first = 0 } = await countByStatus(batchId);
  expect(first).toBeGreaterThan(0);
  expect(first).toBeLessThan(1_010);
  expect(await voidedCounts(batchId)).toEqual([first]);
  expect(await voidAll(batchId)).toEqual({ voided: 1_010 - first, alreadyFinal: first });
});

it("simultaneous redeems and voidBatch leave each voucher redeemed or voided, and the counts are right", async () => {
  const { batchId, vouchers } = await issueBatch(300);
  const answers: Reply[] = [];
  const queue = vouchers.values();
  const redeemNext = async () => {
    for (const { code, id } of queue) {
      answers.push(await untilDecided(() => till.redeem({ code, externalRef: `beside-${id}` })));
    }
  };
  const redeems = Array.from({ length: 16 }, redeemNext);
  await until(() => answers.length > 30);
  const result = await voidAll(batchId);
  await Promise.all(redeems);
  const redeemed = answers.filter(({ status }) => status === 200).length;
  expect(new Set(answers.map(({ status, body }) => (status === 200 ? 200 : body.code)))).toEqual(
    new Set([200, "voucher_voided"]),
  );
  expect(result).toEqual({ voided: 300 - redeemed, alreadyFinal: redeemed });
  const { Redeemed = 0, Voided = 0 } = await countByStatus(batchId);
  expect({ Redeemed, Voided }).toEqual({ Redeemed: redeemed, Voided: 300 - redeemed });
});

it("voidBatch voids all unlocked vouchers before it waits for a locked voucher", async () => {
  const { batchId, vouchers } = await issueBatch(50);
  const [stuck] = vouchers;
  if (stuck === undefined) throw new Error("no voucher");
  let voiding: Promise<unknown> = Promise.resolve();
  await besideTransaction(servers.db, async (outside) => {
    await lockRows(outside, [stuck.id]);
    voiding = voidAll(batchId);
    await untilWaiting(servers.db, 1);
    expect(await countByStatus(batchId)).toEqual({ Active: 1, Voided: 49 });
  });
  expect(await voiding).toEqual({ voided: 50, alreadyFinal: 0 });
});

it("voidBatch without a time limit voids each locked voucher when its lock is released", async () => {
  const { batchId, vouchers } = await issueBatch(50);
  const ids = vouchers.map(({ id }) => id);
  const voiding = await besideTransaction(servers.db, async (first) =>
    besideTransaction(servers.db, async (second) => {
      await lockRows(first, ids.slice(0, 10));
      await lockRows(second, ids.slice(10, 20));
      const voiding = voidAll(batchId);
      await untilWaiting(servers.db, 1);
      await first.query("ROLLBACK");
      await until(async () => (await countByStatus(batchId)).Voided === 40);
      await untilWaiting(servers.db, 1);
      return { voiding };
    }),
  );
  expect(await voiding.voiding).toEqual({ voided: 50, alreadyFinal: 0 });
});

it("voidBatch with a time limit voids all vouchers except those that stay locked", async () => {
  const { batchId, vouchers } = await issueBatch(3);
  const [stuck = "", freed = ""] = vouchers.map(({ id }) => id);
  const result = await besideTransaction(servers.db, (first) =>
    besideTransaction(servers.db, async (second) => {
      await lockRows(first, [stuck]);
      await lockRows(second, [freed]);
      const endBy = performance.now() + 3_000;
      const voiding = voidBatch({ ...provisioning(servers.db), lockWaitMs: 1_000, endBy }, batchId, null);
      await untilWaiting(servers.db, 1);
      await second.query("ROLLBACK");
      return voiding;
    }),
  );
  expect(result).toEqual({ voided: 2, alreadyFinal: 0 });
});

it("voidBatch voids no voucher after its time limit", async () => {
  const { batchId } = await issueBatch(3);
  const ctx = { ...provisioning(servers.db), endBy: performance.now() };
  expect(await voidBatch(ctx, batchId, null)).toEqual({ voided: 0, alreadyFinal: 0 });
});

it("voidBatch reads a range of ids through an index, at the same cost in a table of any size", async () => {
  const { batchId } = await issueBatch(300);
  const read = async () => {
    const { rows } = await servers.db.query(
      `SELECT relname, seq_tup_read FROM pg_stat_user_tables
        WHERE relname IN ('vouchers', 'voucher_events', 'reservations') ORDER BY 1`,
    );
    return rows;
  };
  const updates = async (): Promise<number> =>
    Number(
      (await servers.db.query("SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'vouchers'")).rows[0]
        .n_tup_upd,
    );
  const [before, updatedBefore] = [await read(), await updates()];
  expect(before).toHaveLength(3);
  // Closes the pool, because Postgres publishes a connection's statistics when the connection ends.
  const own = new pg.Pool({ connectionString: servers.adminUrl, max: 1 });
  await voidBatch(provisioning(own), batchId, null).finally(() => own.end());
  await until(async () => (await updates()) >= updatedBefore + 300);
  expect(await read()).toEqual(before);
});

it("voidBatch counts expired vouchers as already final, and refuses an unknown batch", async () => {
  const { batchId } = await issueBatch(3, { validUntil: new Date(Date.now() - 1_000) });
  expect(await voidAll(batchId)).toEqual({ voided: 0, alreadyFinal: 3 });
  expect(await voidedCounts(batchId)).toEqual([]);
  await expect(voidAll("bat_unknown")).rejects.toMatchObject({ code: "not_found" });
});

async function issueBatch(count: number, options: Parameters<typeof issueVouchers>[3] = {}) {
  const vouchers = await issueVouchers(servers.db, partner, count, options);
  return { batchId: await findBatchOf(servers.db, vouchers[0]?.id ?? ""), vouchers };
}

async function countByStatus(batchId: string): Promise<Record<string, number>> {
  const { rows } = await servers.db.query(
    "SELECT status, count(*)::int AS count FROM vouchers WHERE batch_id = $1 GROUP BY status",
    [batchId],
  );
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
}

async function voidedCounts(batchId: string): Promise<number[]> {
  const { rows } = await servers.db.query("SELECT before, after FROM audit_entries WHERE entity_id = $1 ORDER BY id", [
    batchId,
  ]);
  return rows.map(({ after }) => after.vouchersVoided).filter((count) => count !== undefined);
}

const voidAll = (batchId: string, ...more: [onRange?: Parameters<typeof voidBatch>[3]]) =>
  voidBatch(provisioning(servers.db), batchId, "printed twice", ...more);
