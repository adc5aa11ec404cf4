import { afterEach, describe, expect, it } from "vitest";
import { readRecorded } from "../../support/recorded.ts";
import { issueVouchers } from "../../support/supply.ts";
import { useService } from "../../support/use-service.ts";

const { db, till, partner, issue } = useService();

afterEach(async () => {
  await db.query("DROP TRIGGER IF EXISTS fail ON redemptions");
  await db.query("DROP FUNCTION IF EXISTS fail");
  await db.query("DROP SEQUENCE IF EXISTS failures");
});

const countFailures = async () => (await db.query("SELECT last_value::int AS n FROM failures")).rows[0].n;

describe.each([
  ["a deadlock", "40P01"],
  ["a serialization failure", "40001"],
])("a transaction with %s", (what, sqlState) => {
  it("a redeem whose transaction meets a database error is retried, and its caller gets 200", async () => {
    const { code } = await issue();
    const externalRef = `${what} once`;
    await failRedemptions(sqlState, externalRef, 2);
    const { status, body } = await till.redeem({ code, externalRef });
    expect({ status, alreadyConfirmed: body.alreadyConfirmed }).toEqual({ status: 200, alreadyConfirmed: false });
    expect(await countFailures()).toBe(3);
  });

  it("a redeem with a persistent database error gets redeem_timeout, and blocks no other voucher", async () => {
    const poisoned = await issue();
    const others = await issueVouchers(db, partner, 5);
    const order = { code: poisoned.code, externalRef: `${what} again and again` };
    await failRedemptions(sqlState, order.externalRef, 1_000_000);
    const [refused, ...redeemed] = await Promise.all([
      till.redeem(order),
      ...others.map(({ code, serial }) => till.redeem({ code, externalRef: `beside ${what} ${serial}` })),
    ]);
    expect({ status: refused.status, code: refused.body.code }).toEqual({ status: 503, code: "redeem_timeout" });
    expect(refused.headers.get("retry-after")).not.toBeNull();
    expect(redeemed.map(({ status }) => status)).toEqual(others.map(() => 200));
    expect(await countFailures()).toBeLessThan(20);
    expect((await readRecorded(db, poisoned.id)).redemption).toBeNull();
    await db.query("DROP TRIGGER fail ON redemptions");
    expect(await till.redeem(order)).toMatchObject({ status: 200 });
  });
});

it("a redeem that the database always refuses does not prevent another reference's redemption", async () => {
  const { code } = await issue();
  await failRedemptions("22000", "poison", 1_000_000);
  expect((await till.redeem({ code, externalRef: "poison" })).body.code).toBe("redeem_timeout");
  expect(await till.redeem({ code, externalRef: "medicine" })).toMatchObject({ status: 200 });
});

/**
 * Makes the next `count` redemptions fail with `sqlState` if their reference begins with `prefix`. A sequence counts
 * the failures, because a rollback does not undo it. The trigger runs as the sequence's owner, because the service may
 * not use the sequence.
 */
async function failRedemptions(sqlState: string, prefix: string, count: number): Promise<void> {
  await db.query(`
    CREATE SEQUENCE failures;
    CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
      IF NEW.external_ref LIKE '${prefix}%' AND nextval('failures') <= ${count} THEN
        RAISE EXCEPTION 'made to fail' USING ERRCODE = '${sqlState}';
      END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER fail BEFORE INSERT ON redemptions FOR EACH ROW EXECUTE FUNCTION fail()`);
}
