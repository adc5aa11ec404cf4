import { expect, it } from "vitest";
import { useDatabase } from "../../support/use-service.ts";
import { ALWAYS, findBrokenRows, ON_A_STEADY_CLOCK, SOON } from "./row-rules.ts";

// Plants rows that the database itself would refuse, each against one rule.

const { db, issue } = useDatabase();

/** A reservation from one minute ago to now, which ended after a number of seconds. */
const reservation = (ticket: string, state: string, endedAfter: number | null) => `
  INSERT INTO reservations (ticket, voucher_id, organization_id, key_id, token_secret_id, state, started_at, expires_at,
                            ended_at)
  SELECT '${ticket}', id, '', '', '', '${state}', now() - interval '60 s', now(),
         now() - interval '60 s' + ${endedAfter} * interval '1 s' FROM vouchers`;

const PLANTED: Record<string, string[]> = {
  "no reservation outlives its end": [
    `${reservation("a", "Live", null)};
     UPDATE reservations SET started_at = started_at - interval '60 s', expires_at = expires_at - interval '60 s'`,
  ],
  "every event gets sealed": [
    `UPDATE voucher_events SET seal_status = 'Pending', data = '{}', payload = NULL, record_hash = NULL,
                               previous_hash = NULL`,
  ],
  "each redemption has its sealed event": [
    `INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, redeem_code, external_ref)
     SELECT date_trunc('milliseconds', now()), id, '', '', '', 'R-1', 'order-1' FROM vouchers`,
  ],
  "an expired reservation ended at its expiresAt": [reservation("a", "Expired", 59)],
  "a consumed reservation was consumed by a redemption": [reservation("a", "Consumed", 30)],
  "a consumed or released reservation ended before its expiresAt": [reservation("a", "Released", 60)],
  "a voucher has one reservation at a time": [reservation("a", "Released", 30), reservation("b", "Released", 40)],
};

it("the rows of a voucher that nothing happened to break no rule of the fault campaigns", async () => {
  await issue();
  const rules = { ...SOON, ...ALWAYS, ...ON_A_STEADY_CLOCK };
  expect(await findBrokenRows(db, rules)).toEqual([]);
  expect(Object.keys(rules).toSorted()).toEqual(Object.keys(PLANTED).toSorted());
});

it.each(Object.entries(PLANTED))("rows break exactly the rule that %s", async (rule, statements) => {
  const client = await db.connect();
  try {
    await client.query("BEGIN");
    // Disables triggers and foreign keys.
    await client.query("SET LOCAL session_replication_role = replica");
    for (const statement of statements) await client.query(statement);
    const broken = await findBrokenRows(client, { ...SOON, ...ALWAYS, ...ON_A_STEADY_CLOCK });
    expect(broken).toEqual([{ rule, detail: expect.stringMatching(/^1 times: \S+/) }]);
  } finally {
    await client.query("ROLLBACK");
    client.release();
  }
});
