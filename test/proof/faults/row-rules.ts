import type pg from "pg";

/** Rules for rows, each with a query of the rows that break it. The invariants of every test are further rules. */
type RowRules = Readonly<Record<string, string>>;

/** Maximum number of rows in a detail. */
const NAMED_MAX = 10;

/** Rules that hold once the sweeper has done its work after the recovery. */
export const SOON: RowRules = {
  "no reservation outlives its end": `
    SELECT ticket FROM reservations WHERE state = 'Live' AND expires_at < clock_timestamp() - interval '2 seconds'`,
  "every event gets sealed": `
    SELECT voucher_id || ' ' || sequence FROM voucher_events WHERE seal_status = 'Pending'`,
};

/** Hold at any time. */
export const ALWAYS: RowRules = {
  "each redemption has its sealed event": `
    SELECT d.voucher_id FROM redemptions d
     WHERE (SELECT count(*) FROM voucher_events e
             WHERE e.voucher_id = d.voucher_id AND e.event_type = 'voucher.instance.redeemed'
               AND e.seal_status = 'Sealed'
               AND CASE WHEN d.external_ref LIKE 'erased:%' THEN e.payload IS NULL
                        ELSE (e.payload::json -> 'data' ->> 'externalRef') = d.external_ref
                         AND (e.payload::json -> 'data' ->> 'redeemCode') = d.redeem_code END
               AND e.occurred_at = d.redeemed_at) <> 1`,
  "an expired reservation ended at its expiresAt": `
    SELECT ticket FROM reservations WHERE state = 'Expired' AND ended_at <> expires_at`,
  "a consumed reservation was consumed by a redemption": `
    SELECT r.ticket FROM reservations r LEFT JOIN redemptions d ON d.ticket = r.ticket
     WHERE r.state = 'Consumed' AND (d.ticket IS NULL OR d.redeemed_at <> r.ended_at)`,
};

/**
 * Rules that hold only if the clock never steps back. After a step back, a redemption gets the closed time as its time,
 * and may consume a reservation with an earlier end.
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

/** Finds the rules that rows break, with the number of these rows and the first of them. */
export async function findBrokenRows(db: Pick<pg.Pool, "query">, rules: RowRules) {
  const broken: { rule: string; detail: string }[] = [];
  for (const [rule, text] of Object.entries(rules)) {
    const { rows } = await db.query<string[]>({ text, rowMode: "array" });
    const detail = `${rows.length} times: ${rows.slice(0, NAMED_MAX).flat().join(", ")}`;
    if (rows.length > 0) broken.push({ rule, detail });
  }
  return broken;
}
