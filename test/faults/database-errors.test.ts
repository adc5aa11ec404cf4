import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { readRecorded } from "../support/recorded.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi, type TestWorker } from "../support/service.ts";
import { issueVoucher, issueVouchers, makeKey, makePartner, type TestPartner } from "../support/supply.ts";

let servers: TestServers;
let api: TestApi;
let workers: TestWorker;
let partner: TestPartner;
let till: PartnerClient;

beforeAll(async () => {
  servers = await openTestServers();
  [api, workers] = await Promise.all([startApi(servers), startWorkers(servers)]);
  partner = await makePartner(servers.db);
  till = partnerClient(api.url, (await makeKey(servers.db, partner.organizationId)).key);
});

afterEach(async () => {
  await servers.db.query("DROP TRIGGER IF EXISTS fail ON redemptions");
  await servers.db.query("DROP FUNCTION IF EXISTS fail");
  await servers.db.query("DROP SEQUENCE IF EXISTS failures");
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await Promise.all([api.close(), workers.close()]);
  await servers.close();
});

/**
 * Makes the next `count` burns under references that begin with `prefix` fail as if another transaction had got in their way. A
 * sequence counts, because what a rolled-back transaction takes from it stays taken; the service has no right to it, so the trigger
 * runs as its maker.
 */
async function failBurns(sqlState: string, prefix: string, count: number): Promise<void> {
  await servers.db.query(`
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

async function countFailures(): Promise<number> {
  const { rows } = await servers.db.query("SELECT last_value::int AS n FROM failures");
  return rows[0].n;
}

describe.each([
  ["a deadlock", "40P01"],
  ["a serialization failure", "40001"],
])("%s", (what, sqlState) => {
  it("is tried again and nobody hears of it", async () => {
    const { code } = await issueVoucher(servers.db, partner);
    const externalRef = `${what} once`;
    await failBurns(sqlState, externalRef, 2);
    const { status, body } = await till.redeem({ code, externalRef });
    expect({ status, alreadyConfirmed: body.alreadyConfirmed }).toEqual({ status: 200, alreadyConfirmed: false });
    expect(await countFailures()).toBe(3);
  });

  it("that comes again and again ends after a bounded number of tries, burns nothing and stops nobody else", async () => {
    const [poisoned, ...others] = await issueVouchers(servers.db, partner, 6);
    const externalRef = `${what} for ever`;
    await failBurns(sqlState, externalRef, 1_000_000);
    const [refused, ...burnt] = await Promise.all([
      till.redeem({ code: poisoned?.code, externalRef }),
      ...others.map(({ code, serial }) => till.redeem({ code, externalRef: `beside ${what} ${serial}` })),
    ]);
    expect({ status: refused.status, code: refused.body.code }).toEqual({ status: 503, code: "redeem_unknown" });
    expect(refused.headers.get("retry-after")).not.toBeNull();
    expect(burnt.map(({ status }) => status)).toEqual(others.map(() => 200));
    expect(await countFailures()).toBeLessThan(20);
    expect((await readRecorded(servers.db, poisoned?.id ?? "")).redemption).toBeNull();
    await servers.db.query("DROP TRIGGER fail ON redemptions");
    expect(await till.redeem({ code: poisoned?.code, externalRef })).toMatchObject({ status: 200 });
  });
});

describe("an attempt that the database refuses for good", () => {
  it("does not block its voucher: another reference burns it", async () => {
    const { code } = await issueVoucher(servers.db, partner);
    await failBurns("22000", "poison", 1_000_000);
    expect((await till.redeem({ code, externalRef: "poison" })).body.code).toBe("redeem_unknown");
    expect(await till.redeem({ code, externalRef: "medicine" })).toMatchObject({ status: 200 });
  });
});
