import type pg from "pg";
import { expect } from "vitest";
import { type ServedEvent, verifyServedChain } from "./independent-verifier.ts";

/** Counts that must be zero at every moment, whatever happened. */
const IMPOSSIBLE: Record<string, string> = {
  "a redeemed voucher without its one redemption": `
    SELECT count(*) FROM vouchers v LEFT JOIN redemptions r ON r.voucher_id = v.id
     WHERE (v.status = 'Redeemed') <> (r.voucher_id IS NOT NULL)`,
  "a voucher whose redeemed events are not as many as its redemptions": `
    SELECT count(*) FROM vouchers v
     WHERE (v.status = 'Redeemed')::int <> (SELECT count(*) FROM voucher_events e
            WHERE e.voucher_id = v.id AND e.event_type = 'voucher.instance.redeemed' AND e.seal_status = 'Sealed')`,
  "an external reference that burnt twice": `
    SELECT count(*) FROM (SELECT 1 FROM redemptions GROUP BY organization_id, external_ref HAVING count(*) > 1) AS twice`,
  "a voucher with two live holds": `
    SELECT count(*) FROM (SELECT 1 FROM reservations WHERE state = 'Live' GROUP BY voucher_id HAVING count(*) > 1) AS twice`,
  "a live hold on a voucher that is used or voided": `
    SELECT count(*) FROM reservations r JOIN vouchers v ON v.id = r.voucher_id WHERE r.state = 'Live' AND v.status <> 'Active'`,
  "a redemption whose hold was not consumed by it": `
    SELECT count(*) FROM redemptions d JOIN reservations r ON r.ticket = d.ticket
     WHERE r.state <> 'Consumed' OR r.voucher_id <> d.voucher_id`,
  "a chain head that is not the chain's": `
    SELECT count(*) FROM vouchers v
     WHERE v.last_sequence <> (SELECT count(*) FROM voucher_events e WHERE e.voucher_id = v.id)
        OR v.sealed_hash IS DISTINCT FROM (SELECT e.record_hash FROM voucher_events e
             WHERE e.voucher_id = v.id AND e.sequence = v.sealed_sequence)`,
};

/** Fails unless everything in the database is as it must always be, each chain included. */
export async function assertInvariants(db: pg.Pool): Promise<void> {
  for (const [name, query] of Object.entries(IMPOSSIBLE)) {
    const { rows } = await db.query<{ count: string | number }>(query);
    expect(Number(rows[0]?.count), name).toBe(0);
  }
  const { rows } = await db.query<{ voucher_id: string } & ServedEvent>(`
    SELECT voucher_id, sequence, seal_status AS "sealStatus", encode(record_hash, 'hex') AS "recordHash",
           encode(previous_hash, 'hex') AS "previousHash", payload
      FROM voucher_events ORDER BY voucher_id, sequence`);
  for (const [voucherId, events] of Map.groupBy(rows, (row) => row.voucher_id)) {
    expect(verifyServedChain(events), `the chain of ${voucherId}`).toBeNull();
  }
}
