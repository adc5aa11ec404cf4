import type pg from "pg";
import { expect } from "vitest";
import { type ServedEvent, verifyServedChain } from "./independent-verifier.ts";
import { leafOfEvent } from "./leaf-of-event.ts";

/** The vouchers that users acquired. */
const ACQUISITIONS = "SELECT voucher_id FROM claims UNION ALL SELECT voucher_id FROM purchases";
/** Whether the event `e` belongs to an acquisition. */
const IS_ACQUISITION = "e.event_type IN ('voucher.instance.claimed', 'voucher.instance.bought')";

/** Counts that must always be zero. */
const IMPOSSIBLE: Record<string, string> = {
  "a redeemed voucher without exactly one redemption": `
    SELECT count(*) FROM vouchers v LEFT JOIN redemptions r ON r.voucher_id = v.id
     WHERE (v.status = 'Redeemed') <> (r.voucher_id IS NOT NULL)`,
  "a voucher whose number of redeemed events differs from its redemptions": `
    SELECT count(*) FROM vouchers v
     WHERE (v.status = 'Redeemed')::int <> (SELECT count(*) FROM voucher_events e
            WHERE e.voucher_id = v.id AND e.event_type = 'voucher.instance.redeemed' AND e.seal_status = 'Sealed')`,
  "an external reference with two redemptions": `
    SELECT count(*) FROM (SELECT 1 FROM redemptions
                           GROUP BY organization_id, external_ref HAVING count(*) > 1) AS twice`,
  "a voucher with two live reservations": `
    SELECT count(*) FROM (SELECT 1 FROM reservations WHERE state = 'Live'
                           GROUP BY voucher_id HAVING count(*) > 1) AS twice`,
  "a live reservation of a redeemed or voided voucher": `
    SELECT count(*) FROM reservations r JOIN vouchers v ON v.id = r.voucher_id
     WHERE r.state = 'Live' AND v.status <> 'Active'`,
  "a redemption that did not consume its reservation": `
    SELECT count(*) FROM redemptions d LEFT JOIN reservations r ON r.ticket = d.ticket
     WHERE d.ticket IS NOT NULL AND (r.state = 'Consumed' AND r.voucher_id = d.voucher_id) IS NOT TRUE`,
  "a chain head that differs from the chain": `
    SELECT count(*) FROM vouchers v
     WHERE v.last_sequence <> (SELECT count(*) FROM voucher_events e WHERE e.voucher_id = v.id)
        OR v.sealed_hash IS DISTINCT FROM (SELECT e.record_hash FROM voucher_events e
             WHERE e.voucher_id = v.id AND e.sequence = v.sealed_sequence)`,
  "a voucher that was acquired twice": `
    SELECT count(*) FROM (SELECT 1 FROM (${ACQUISITIONS}) AS acquisitions
                           GROUP BY voucher_id HAVING count(*) > 1) AS twice`,
  "a claim without exactly one event": `
    SELECT count(*) FROM claims c
     WHERE (SELECT array_agg(e.event_type || ' ' ||
                             CASE WHEN e.erased_by IS NULL THEN e.actor_connected_id ELSE c.user_id END)
              FROM voucher_events e
             WHERE e.voucher_id = c.voucher_id AND ${IS_ACQUISITION})
       IS DISTINCT FROM ARRAY['voucher.instance.claimed ' || c.user_id]`,
  "a purchase without exactly one event": `
    SELECT count(*) FROM purchases s
     WHERE (SELECT array_agg(e.event_type || ' ' ||
                             CASE WHEN e.erased_by IS NULL THEN e.actor_connected_id ELSE s.user_id END)
              FROM voucher_events e
             WHERE e.voucher_id = s.voucher_id AND ${IS_ACQUISITION})
       IS DISTINCT FROM ARRAY['voucher.instance.bought ' || s.user_id]`,
  "a claimed or bought event without an acquisition": `
    SELECT count(*) FROM voucher_events e JOIN vouchers v ON v.id = e.voucher_id
     WHERE v.batch_id IN (SELECT batch_id FROM batch_windows) AND ${IS_ACQUISITION}
       AND e.voucher_id NOT IN (${ACQUISITIONS})`,
  "a pickable voucher that is acquired, not Active, or in a batch without windows": `
    SELECT count(*) FROM vouchers v WHERE v.pickable AND (v.status <> 'Active'
        OR v.id IN (${ACQUISITIONS})
        OR NOT EXISTS (SELECT 1 FROM batch_windows w WHERE w.batch_id = v.batch_id))`,
  "an Active voucher that is not pickable although it was not acquired": `
    SELECT count(*) FROM vouchers v JOIN (SELECT DISTINCT batch_id FROM batch_windows) AS w ON w.batch_id = v.batch_id
     WHERE NOT v.pickable AND v.status = 'Active' AND v.id NOT IN (${ACQUISITIONS})`,
  "an acquisition of a reserved voucher": `
    SELECT count(*) FROM voucher_events e JOIN reservations r ON r.voucher_id = e.voucher_id
     WHERE ${IS_ACQUISITION}
       AND r.started_at < e.occurred_at AND e.occurred_at < coalesce(r.ended_at, r.expires_at)`,
  "a sealed event without its hash in the log": `
    SELECT count(*) FROM voucher_events e LEFT JOIN log_batches b ON b.id = e.log_slot >> 12
     CROSS JOIN LATERAL (SELECT ${leafOfEvent("e", "b")} AS index) AS l
      LEFT JOIN log_bundles u ON u.index = l.index / 256
     WHERE e.seal_status = 'Sealed' AND e.record_hash IS DISTINCT FROM CASE WHEN b.first_index IS NULL
           THEN substr(b.hashes, (e.log_slot & 4095)::int * 32 + 1, 32)
           ELSE substr(u.entries, (l.index % 256)::int * 32 + 1, 32) END`,
  "a leaf without exactly one event": `
    SELECT (SELECT count(*) FROM voucher_events WHERE seal_status = 'Sealed') - count(DISTINCT e.log_slot)
         + abs((SELECT coalesce(sum(leaves), 0) FROM log_batches) - count(DISTINCT e.log_slot)) AS count
      FROM voucher_events e`,
  "an event whose leaf comes before that of the event before it": `
    SELECT count(*) FROM voucher_events e
      JOIN voucher_events f ON f.voucher_id = e.voucher_id AND f.sequence = e.sequence + 1
      JOIN log_batches b ON b.id = e.log_slot >> 12 LEFT JOIN log_batches c ON c.id = f.log_slot >> 12
     WHERE CASE WHEN b.first_index IS NULL THEN c.first_index IS NOT NULL OR f.log_slot <= e.log_slot
                ELSE ${leafOfEvent("f", "c")} <= ${leafOfEvent("e", "b")} END`,
  "a delivery that is due before an earlier one of its voucher, or never": `
    SELECT count(*) FROM (SELECT next_attempt_at,
                                 row_number() OVER (PARTITION BY endpoint_id, voucher_id ORDER BY position) AS turn
                            FROM webhook_deliveries WHERE finished_at IS NULL) AS d
     WHERE (turn = 1) <> (next_attempt_at IS NOT NULL)`,
  "two Active or Offered contracts between a user and a brand": `
    SELECT count(*) FROM (SELECT 1 FROM referrer_contracts WHERE status IN ('Offered', 'Active')
                           GROUP BY brand_id, user_id HAVING count(*) > 1) AS twice`,
};

/** Fails unless the database satisfies every invariant and all chains verify. */
export async function assertInvariants(db: pg.Pool): Promise<void> {
  const names = Object.keys(IMPOSSIBLE);
  const counted = `SELECT ${Object.values(IMPOSSIBLE).map((query) => `(${query})`)}`;
  const { rows: counts } = await db.query<(string | number)[]>({ text: counted, rowMode: "array" });
  expect(names.filter((_, at) => Number(counts[0]?.[at]) !== 0)).toEqual([]);
  const { rows } = await db.query<{ voucher_id: string } & ServedEvent>(`
    SELECT voucher_id, sequence, event_type AS "eventType", seal_status AS "sealStatus", payload,
           encode(record_hash, 'hex') AS "recordHash", encode(previous_hash, 'hex') AS "previousHash"
      FROM voucher_events ORDER BY voucher_id, sequence`);
  for (const [voucherId, events] of Map.groupBy(rows, (row) => row.voucher_id)) {
    expect(verifyServedChain(events), `the chain of ${voucherId}`).toBeNull();
  }
}
