import type pg from "pg";
import { expect } from "vitest";
import { type ServedEvent, verifyServedChain } from "./independent-verifier.ts";
import { leafOfEvent } from "./leaf-of-event.ts";

// Rules that the service's rows satisfy. Test files check them at their end.

/** Rules, each with a query that names the rows that break it, in one column. */
type RowRules = Readonly<Record<string, string>>;

/** The vouchers that users acquired. */
const ACQUISITIONS = "SELECT voucher_id FROM claims UNION ALL SELECT voucher_id FROM purchases";
/** Whether the event `e` belongs to an acquisition. */
const IS_ACQUISITION = "e.event_type IN ('voucher.instance.claimed', 'voucher.instance.bought')";

/** Acquisitions `a` without exactly one event, of this type and user. */
const acquisitionsWithoutEvent = (table: string, verb: string) => `
    SELECT a.voucher_id FROM ${table} a
     WHERE (SELECT array_agg(e.event_type || ' ' ||
                             CASE WHEN e.erased_by IS NULL THEN e.actor_connected_id ELSE a.user_id END)
              FROM voucher_events e WHERE e.voucher_id = a.voucher_id AND ${IS_ACQUISITION})
       IS DISTINCT FROM ARRAY['voucher.instance.${verb} ' || a.user_id]`;

/** The rules that a second redemption breaks. */
export const REDEEMED_ONCE: RowRules = {
  "a Redeemed voucher has one redemption, and other vouchers have none": `
    SELECT v.id FROM vouchers v LEFT JOIN redemptions d ON d.voucher_id = v.id
     GROUP BY v.id HAVING count(d.voucher_id) <> (v.status = 'Redeemed')::int`,
  "a redemption has one redeemed event, and other vouchers have none": `
    SELECT v.id FROM vouchers v LEFT JOIN redemptions d ON d.voucher_id = v.id
     WHERE (d.voucher_id IS NOT NULL)::int <> (SELECT count(*) FROM voucher_events e
            WHERE e.voucher_id = v.id AND e.event_type = 'voucher.instance.redeemed')`,
  "a reference has one redemption": `
    SELECT external_ref FROM redemptions GROUP BY organization_id, external_ref HAVING count(*) > 1`,
};

/** Rules that always hold, even for rows that a test has written. */
export const ALWAYS: RowRules = {
  ...REDEEMED_ONCE,
  "a voucher has at most one live reservation": `
    SELECT voucher_id FROM reservations WHERE state = 'Live' GROUP BY voucher_id HAVING count(*) > 1`,
  "only Active vouchers have live reservations": `
    SELECT r.ticket FROM reservations r JOIN vouchers v ON v.id = r.voucher_id
     WHERE r.state = 'Live' AND v.status <> 'Active'`,
  "a redemption consumed the reservation that it names": `
    SELECT d.ticket FROM redemptions d LEFT JOIN reservations r ON r.ticket = d.ticket
     WHERE d.ticket IS NOT NULL AND (r.state = 'Consumed' AND r.voucher_id = d.voucher_id) IS NOT TRUE`,
  "a voucher's head is the end of its chain": `
    SELECT v.id FROM vouchers v
     WHERE v.last_sequence <> (SELECT count(*) FROM voucher_events e WHERE e.voucher_id = v.id)
        OR v.sealed_hash IS DISTINCT FROM (SELECT e.record_hash FROM voucher_events e
             WHERE e.voucher_id = v.id AND e.sequence = v.sealed_sequence)`,
  "a voucher is acquired at most once": `
    SELECT voucher_id FROM (${ACQUISITIONS}) AS acquisitions GROUP BY voucher_id HAVING count(*) > 1`,
  "a claim has one event": acquisitionsWithoutEvent("claims", "claimed"),
  "a purchase has one event": acquisitionsWithoutEvent("purchases", "bought"),
  "a claimed or bought event has an acquisition": `
    SELECT e.voucher_id FROM voucher_events e JOIN vouchers v ON v.id = e.voucher_id
     WHERE v.batch_id IN (SELECT batch_id FROM batch_windows) AND ${IS_ACQUISITION}
       AND e.voucher_id NOT IN (${ACQUISITIONS})`,
  "a pickable voucher is Active, not acquired, and in a batch with windows": `
    SELECT v.id FROM vouchers v WHERE v.pickable AND (v.status <> 'Active'
        OR v.id IN (${ACQUISITIONS})
        OR NOT EXISTS (SELECT 1 FROM batch_windows w WHERE w.batch_id = v.batch_id))`,
  "an Active voucher of a batch with windows is pickable until it is acquired": `
    SELECT v.id FROM vouchers v JOIN (SELECT DISTINCT batch_id FROM batch_windows) AS w ON w.batch_id = v.batch_id
     WHERE NOT v.pickable AND v.status = 'Active' AND v.id NOT IN (${ACQUISITIONS})`,
  "a reserved voucher is not acquired": `
    SELECT r.ticket FROM voucher_events e JOIN reservations r ON r.voucher_id = e.voucher_id
     WHERE ${IS_ACQUISITION}
       AND r.started_at < e.occurred_at AND e.occurred_at < coalesce(r.ended_at, r.expires_at)`,
  "a sealed event has its hash in the log": `
    SELECT e.voucher_id || ' ' || e.sequence FROM voucher_events e LEFT JOIN log_batches b ON b.id = e.log_slot >> 12
     CROSS JOIN LATERAL (SELECT ${leafOfEvent("e", "b")} AS index) AS l
      LEFT JOIN log_bundles u ON u.index = l.index / 256
     WHERE e.seal_status = 'Sealed' AND e.record_hash IS DISTINCT FROM CASE WHEN b.first_index IS NULL
           THEN substr(b.hashes, (e.log_slot & 4095)::int * 32 + 1, 32)
           ELSE substr(u.entries, (l.index % 256)::int * 32 + 1, 32) END`,
  "a leaf has one event": `
    SELECT sealed || ' events in ' || slots || ' of ' || leaves || ' leaves'
      FROM (SELECT count(*) FILTER (WHERE seal_status = 'Sealed') AS sealed, count(DISTINCT log_slot) AS slots
              FROM voucher_events) AS e,
           (SELECT coalesce(sum(leaves), 0) AS leaves FROM log_batches) AS b
     WHERE sealed <> slots OR leaves <> slots`,
  "an event's leaf comes after that of the event before it": `
    SELECT f.voucher_id || ' ' || f.sequence FROM voucher_events e
      JOIN voucher_events f ON f.voucher_id = e.voucher_id AND f.sequence = e.sequence + 1
      JOIN log_batches b ON b.id = e.log_slot >> 12 LEFT JOIN log_batches c ON c.id = f.log_slot >> 12
     WHERE CASE WHEN b.first_index IS NULL THEN c.first_index IS NOT NULL OR f.log_slot <= e.log_slot
                ELSE ${leafOfEvent("f", "c")} <= ${leafOfEvent("e", "b")} END`,
  "of a voucher's deliveries to an endpoint, the earliest is due": `
    SELECT event_id FROM (SELECT event_id, next_attempt_at,
                                 row_number() OVER (PARTITION BY endpoint_id, voucher_id ORDER BY position) AS turn
                            FROM webhook_deliveries WHERE finished_at IS NULL) AS d
     WHERE (turn = 1) <> (next_attempt_at IS NOT NULL)`,
  "a user has one Active or Offered contract with a brand": `
    SELECT brand_id || ' ' || user_id FROM referrer_contracts WHERE status IN ('Offered', 'Active')
     GROUP BY brand_id, user_id HAVING count(*) > 1`,
};

/** Rules that always hold for rows that the service has written. */
export const OF_THE_SERVICE: RowRules = {
  "a redeemed event is sealed with its redemption's reference, code and time": `
    SELECT d.voucher_id FROM redemptions d
      JOIN voucher_events e ON e.voucher_id = d.voucher_id AND e.event_type = 'voucher.instance.redeemed'
     WHERE (e.seal_status = 'Sealed' AND e.occurred_at = d.redeemed_at
            AND CASE WHEN d.external_ref LIKE 'erased:%' THEN e.payload IS NULL
                     ELSE (e.payload::json -> 'data' ->> 'externalRef') = d.external_ref
                      AND (e.payload::json -> 'data' ->> 'redeemCode') = d.redeem_code END) IS NOT TRUE`,
  "a consumed reservation ended with its redemption": `
    SELECT r.ticket FROM reservations r LEFT JOIN redemptions d ON d.ticket = r.ticket
     WHERE r.state = 'Consumed' AND (d.redeemed_at = r.ended_at) IS NOT TRUE`,
  "an expired reservation ended at its expiresAt": `
    SELECT ticket FROM reservations WHERE state = 'Expired' AND ended_at <> expires_at`,
};

/**
 * Rules that hold only if the clock never steps back. After a step back, a redemption's time is `closed_until`, and the
 * redemption may consume a reservation with an earlier end.
 */
export const ON_A_STEADY_CLOCK: RowRules = {
  "a consumed or released reservation ended before its expiresAt": `
    SELECT ticket FROM reservations WHERE state IN ('Consumed', 'Released') AND ended_at >= expires_at`,
  "a voucher has one reservation at a time": `
    SELECT one.ticket || ' ' || other.ticket
      FROM reservations one JOIN reservations other ON other.voucher_id = one.voucher_id AND other.ticket > one.ticket
     WHERE tstzrange(one.started_at, least(one.ended_at, one.expires_at))
        && tstzrange(other.started_at, least(other.ended_at, other.expires_at))`,
};

/** Rules that hold once the sweeper and the sealer have done their work. */
export const SOON: RowRules = {
  "no reservation outlives its end": `
    SELECT ticket FROM reservations WHERE state = 'Live' AND expires_at < clock_timestamp() - interval '2 seconds'`,
  "every event gets sealed": `
    SELECT voucher_id || ' ' || sequence FROM voucher_events WHERE seal_status = 'Pending'`,
};

export const CHAINS_VERIFY = "every chain verifies";

export interface BrokenRule {
  rule: string;
  rows: string[];
}

export async function findBrokenRows(db: Pick<pg.Pool, "query">, rules: RowRules): Promise<BrokenRule[]> {
  const arrays = Object.values(rules).map((query) => `ARRAY(SELECT broken::text FROM (${query}) AS rows (broken))`);
  const { rows } = await db.query<string[][]>({ text: `SELECT ${arrays}`, rowMode: "array" });
  const broken = Object.keys(rules).map((rule, at) => ({ rule, rows: rows[0]?.[at] ?? [] }));
  return broken.filter((one) => one.rows.length > 0);
}

/** Verifies all chains like a partner. */
export async function findBrokenChains(db: Pick<pg.Pool, "query">): Promise<BrokenRule[]> {
  const { rows } = await db.query<{ voucher_id: string } & ServedEvent>(`
    SELECT voucher_id, sequence, event_type AS "eventType", seal_status AS "sealStatus", payload,
           encode(record_hash, 'hex') AS "recordHash", encode(previous_hash, 'hex') AS "previousHash"
      FROM voucher_events ORDER BY voucher_id, sequence`);
  const broken = [...Map.groupBy(rows, (row) => row.voucher_id)].flatMap(([voucherId, events]) => {
    const problem = verifyServedChain(events);
    return problem === null ? [] : [`${voucherId}: ${problem}`];
  });
  return broken.length === 0 ? [] : [{ rule: CHAINS_VERIFY, rows: broken }];
}

/** Fails unless the database satisfies every rule that always holds, and all chains verify. */
export async function assertInvariants(db: pg.Pool): Promise<void> {
  expect([...(await findBrokenRows(db, ALWAYS)), ...(await findBrokenChains(db))]).toEqual([]);
}
