import type pg from "pg";
import { assertInvariants } from "../support/invariants.ts";
import type { SteppedClock } from "./stepped-clock.ts";
import type { Violation } from "./violation.ts";

/** Each query must return no rows. */
const MUST_BE_EMPTY: Record<string, string> = {
  "at most one redemption per voucher": `
    SELECT voucher_id FROM redemptions GROUP BY voucher_id HAVING count(*) > 1`,
  "at most one redemption per reference": `
    SELECT organization_id || ' ' || external_ref FROM redemptions GROUP BY organization_id, external_ref HAVING count(*) > 1`,
  "each redemption has its sealed event": `
    SELECT d.voucher_id FROM redemptions d
     WHERE (SELECT count(*) FROM voucher_events e
             WHERE e.voucher_id = d.voucher_id AND e.event_type = 'voucher.instance.redeemed' AND e.seal_status = 'Sealed'
               AND (e.payload::json -> 'data' ->> 'externalRef') = d.external_ref
               AND (e.payload::json -> 'data' ->> 'redeemCode') = d.redeem_code
               AND e.occurred_at = d.redeemed_at) <> 1`,
  "each redeemed event has its redemption": `
    SELECT e.voucher_id FROM voucher_events e LEFT JOIN redemptions d USING (voucher_id)
     WHERE e.event_type = 'voucher.instance.redeemed' AND d.voucher_id IS NULL`,
  "an expired reservation ended at its expiresAt": `
    SELECT ticket FROM reservations WHERE state = 'Expired' AND ended_at <> expires_at`,
  "a consumed reservation was consumed by a redemption": `
    SELECT r.ticket FROM reservations r LEFT JOIN redemptions d ON d.ticket = r.ticket
     WHERE r.state = 'Consumed' AND (d.ticket IS NULL OR d.redeemed_at <> r.ended_at)`,
};

/**
 * Holds while the clock never steps back. Otherwise the constraint alone must hold that a voucher has one Live reservation, and a redemption at
 * the closed time may consume a reservation whose end is earlier.
 */
const ON_A_STEADY_CLOCK: Record<string, string> = {
  "a consumed or released reservation ended before its expiresAt": `
    SELECT ticket FROM reservations WHERE state IN ('Consumed', 'Released') AND ended_at >= expires_at`,
  "a voucher has one reservation at a time": `
    SELECT one.ticket || ' ' || other.ticket
      FROM reservations one JOIN reservations other ON other.voucher_id = one.voucher_id AND other.ticket > one.ticket
     WHERE tstzrange(one.started_at, least(one.ended_at, one.expires_at))
        && tstzrange(other.started_at, least(other.ended_at, other.expires_at))`,
};

/** Rows that a violation names at most. */
const NAMED_MAX = 10;

/** Checks the database for contradictions. */
export async function checkDatabase(db: pg.Pool, clock: SteppedClock): Promise<Violation[]> {
  const violations: Violation[] = [];
  const queries = { ...MUST_BE_EMPTY, ...(!clock.hasStepped && ON_A_STEADY_CLOCK) };
  for (const [rule, query] of Object.entries(queries)) {
    const { rows } = await db.query({ text: query, rowMode: "array" });
    if (rows.length === 0) continue;
    const detail = `${rows.length} times: ${rows.slice(0, NAMED_MAX).flat().join(", ")}`;
    violations.push({ rule, detail, exchanges: [] });
  }
  await assertInvariants(db).catch((error: Error) => {
    violations.push({ rule: "the invariants of every test", detail: error.message, exchanges: [] });
  });
  return violations;
}
