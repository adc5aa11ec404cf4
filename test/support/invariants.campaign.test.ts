import { beforeAll, expect, it } from "vitest";
import {
  ALWAYS,
  CHAINS_VERIFY,
  findBrokenChains,
  findBrokenRows,
  OF_THE_SERVICE,
  ON_A_STEADY_CLOCK,
  REDEEMED_ONCE,
  SOON,
} from "./invariants.ts";
import { OPEN } from "./marketplace.ts";
import { issueVouchers } from "./supply.ts";
import { useDatabase } from "./use-service.ts";

// Inserts rows that break each rule. The database itself would refuse most of them.

const { db, partner, issue } = useDatabase();

const RULES = { ...ALWAYS, ...OF_THE_SERVICE, ...ON_A_STEADY_CLOCK, ...SOON };

beforeAll(async () => {
  await issue();
  await issueVouchers(db, partner, 1, { windows: OPEN });
});

it("the rows of new vouchers break no rule of assertInvariants", async () => {
  expect(await findBrokenRows(db, RULES)).toEqual([]);
  expect(await findBrokenChains(db)).toEqual([]);
});

/** The voucher of a batch without windows, and that of a batch with windows. */
const PLAIN = "(SELECT id FROM vouchers WHERE NOT pickable)";
const OFFERED = "(SELECT id FROM vouchers WHERE pickable)";

/**
 * SQL that inserts a reservation that started one minute ago and expires now. It ended `endedAfter` seconds after its
 * start, or has no end if that is null.
 */
const reservation = (ticket: string, state: string, endedAfter: number | null, voucher = PLAIN) => `
  INSERT INTO reservations (ticket, voucher_id, organization_id, key_id, token_secret_id, state, started_at, expires_at,
                            ended_at)
  VALUES ('${ticket}', ${voucher}, '', '', '', '${state}', now() - interval '60 s', now(),
          now() - interval '60 s' + ${endedAfter} * interval '1 s')`;
const redemption = (voucher: string, ticket: string | null = null) => `
  INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, redeem_code, external_ref,
                           ticket)
  VALUES (date_trunc('milliseconds', now()), ${voucher}, '', '', '', gen_random_uuid(), 'order-1',
          ${ticket === null ? "NULL" : `'${ticket}'`})`;
const event = (voucher: string, type: string) => `
  INSERT INTO voucher_events (occurred_at, sequence, voucher_id, seal_status, event_type, data)
  VALUES (now() - interval '30 s', 2, ${voucher}, 'Pending', 'voucher.instance.${type}', '{}')`;
const contract = (id: string) =>
  `INSERT INTO referrer_contracts (id, brand_id, user_id, status) VALUES ('${id}', '', 'ann', 'Active')`;
const claim = `INSERT INTO claims (user_id, product_id, voucher_id) VALUES ('ann', '', ${OFFERED})`;
const purchase = `
  INSERT INTO purchases (organization_id, user_id, payment_ref, voucher_id)
  VALUES ('', 'ann', 'payment-1', ${OFFERED})`;

const [STATUS, EVENT, REFERENCE] = Object.keys(REDEEMED_ONCE) as [string, string, string];
/** Statements that break a rule, and perhaps others. */
const PLANTED: [rule: string, statements: string[]][] = [
  [STATUS, ["UPDATE vouchers SET status = 'Redeemed', redeemed_at = now() WHERE NOT pickable"]],
  [STATUS, [redemption(PLAIN)]],
  [EVENT, [redemption(PLAIN)]],
  [EVENT, [event(PLAIN, "redeemed")]],
  [
    REFERENCE,
    ["ALTER TABLE redemptions DROP CONSTRAINT redemptions_external_ref", redemption(PLAIN), redemption(OFFERED)],
  ],
  [
    "a voucher has at most one live reservation",
    ["DROP INDEX reservations_one_live", reservation("a", "Live", null), reservation("b", "Live", null)],
  ],
  [
    "only Active vouchers have live reservations",
    ["UPDATE vouchers SET status = 'Voided' WHERE NOT pickable", reservation("a", "Live", null)],
  ],
  ["a redemption consumed the reservation that it names", [redemption(PLAIN, "a")]],
  [
    "a redeemed event is sealed with its redemption's reference, code and time",
    [redemption(PLAIN), event(PLAIN, "redeemed")],
  ],
  ["a consumed reservation ended with its redemption", [reservation("a", "Consumed", 30)]],
  ["a consumed reservation ended with its redemption", [reservation("a", "Consumed", 30), redemption(PLAIN, "a")]],
  ["an expired reservation ended at its expiresAt", [reservation("a", "Expired", 59)]],
  ["a voucher's head is the end of its chain", ["UPDATE vouchers SET last_sequence = 2 WHERE NOT pickable"]],
  ["a voucher's head is the end of its chain", ["UPDATE vouchers SET sealed_hash = sha256('') WHERE NOT pickable"]],
  ["a voucher is acquired at most once", [claim, purchase]],
  ["a claim has one event", [claim]],
  ["a purchase has one event", [purchase]],
  ["a claimed or bought event has an acquisition", [event(OFFERED, "claimed")]],
  ["a pickable voucher is Active, not acquired, and in a batch with windows", ["UPDATE vouchers SET pickable = true"]],
  ["a pickable voucher is Active, not acquired, and in a batch with windows", [claim]],
  [
    "an Active voucher of a batch with windows is pickable until it is acquired",
    ["UPDATE vouchers SET pickable = false"],
  ],
  ["a reserved voucher is not acquired", [event(OFFERED, "bought"), reservation("a", "Live", null, OFFERED)]],
  [
    "a sealed event has its hash in the log",
    ["UPDATE log_batches SET hashes = decode(repeat('00', 32 * leaves), 'hex')"],
  ],
  ["a leaf has one event", ["UPDATE log_batches SET leaves = leaves + 1, hashes = hashes || sha256('')"]],
  ["a leaf has one event", ["UPDATE voucher_events SET log_slot = NULL"]],
  [
    "an event's leaf comes after that of the event before it",
    [event(PLAIN, "voided"), "UPDATE voucher_events SET log_slot = (SELECT min(log_slot) FROM voucher_events)"],
  ],
  [
    "of a voucher's deliveries to an endpoint, the earliest is due",
    [
      `INSERT INTO webhook_deliveries (position, created_at, sequence, endpoint_id, event_id, voucher_id, event_type)
       VALUES (1, now(), 2, '', 'event-1', '', '')`,
    ],
  ],
  [
    "a user has one Active or Offered contract with a brand",
    ["DROP INDEX referrer_contracts_one_open", contract("a"), contract("b")],
  ],
  [CHAINS_VERIFY, ["UPDATE voucher_events SET payload = '{}', record_hash = sha256('{}')"]],
  ["a consumed or released reservation ended before its expiresAt", [reservation("a", "Released", 60)]],
  ["a voucher has one reservation at a time", [reservation("a", "Released", 30), reservation("b", "Released", 40)]],
  [
    "no reservation outlives its end",
    [
      `${reservation("a", "Live", null)};
       UPDATE reservations SET started_at = started_at - interval '60 s', expires_at = expires_at - interval '60 s'`,
    ],
  ],
  ["every event gets sealed", [event(PLAIN, "voided")]],
];

it("each rule of assertInvariants has rows that break it", () => {
  const planted = new Set(PLANTED.map(([rule]) => rule));
  expect(planted).toEqual(new Set([...Object.keys(RULES), CHAINS_VERIFY]));
});

it.each(PLANTED)("the rule of assertInvariants that %s is broken by %j", async (rule, statements) => {
  const client = await db.connect();
  try {
    await client.query("BEGIN");
    // Disables triggers and foreign keys.
    await client.query("SET LOCAL session_replication_role = replica");
    for (const statement of statements) await client.query(statement);
    const broken = [...(await findBrokenRows(client, RULES)), ...(await findBrokenChains(client))];
    expect(broken.map((one) => one.rule)).toContain(rule);
  } finally {
    await client.query("ROLLBACK");
    client.release();
  }
});
