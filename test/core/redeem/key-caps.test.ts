import { beforeAll, expect, it } from "vitest";
import { InvalidValues } from "../../../src/acts/act.ts";
import { changeKey } from "../../../src/acts/key/change.ts";
import { NO_CAPS } from "../../../src/core/keys/db/api-keys.ts";
import { runRedeemJob } from "../../../src/core/redeem/redeem-committer.ts";
import { selectUsedCaps } from "../../../src/watch/db/activity.ts";
import { type PartnerClient, partnerClient } from "../../support/client.ts";
import { besideTransaction, bypassTriggers, untilWaiting } from "../../support/outside-transaction.ts";
import { newAttempt, redeemJob } from "../../support/redeem-jobs.ts";
import { issueVouchers, makeKey, provisioning } from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

const { db, apis, partner, contexts } = useService({ apis: [{}, {}], workers: [{}, {}], contexts: 1 });
const [worker] = contexts;

/** Longer than any test of this file. Milliseconds. */
const TEST_MS = 60_000;
const DAY_MS = 86_400_000;

// A daily cap begins again at midnight, so no test may run across midnight.
beforeAll(() => until(() => DAY_MS - (Date.now() % DAY_MS) > TEST_MS, 2 * TEST_MS));

const change = (id: string, wanted: Partial<Parameters<typeof changeKey.run>[2]>) =>
  changeKey.run(provisioning(db), id, { maxPerDay: null, maxAmountPerDayUsd: null, ...wanted });

async function makeCapped(caps: Partial<typeof NO_CAPS>) {
  const { id, key } = await makeKey(db, partner.organizationId, { caps: { ...NO_CAPS, ...caps } });
  return { id, tills: apis.map((api) => partnerClient(api.url, key)) as [PartnerClient, PartnerClient] };
}

/** Redeems new vouchers simultaneously, by each API in turn. */
async function redeemAtOnce(tills: readonly PartnerClient[], count: number, name: string) {
  const vouchers = await issueVouchers(db, partner, count);
  const order = (n: number) => ({ code: vouchers[n]?.code, externalRef: `${name}-${n}` });
  const replies = await Promise.all(
    vouchers.map((_, n) => (tills[n % tills.length] as PartnerClient).redeem(order(n))),
  );
  const redeemed = replies.flatMap(({ status }, n) => (status === 200 ? [order(n)] : []));
  const refused = replies.flatMap((reply, n) => (reply.status === 200 ? [] : [{ reply, order: order(n) }]));
  return { redeemed, refused };
}

it("a key with a daily limit of 7 redeems 7 of 40 vouchers that are redeemed at once", async () => {
  const { tills } = await makeCapped({ maxPerDay: 7 });
  const { redeemed, refused } = await redeemAtOnce(tills, 40, "count");
  expect(redeemed).toHaveLength(7);
  for (const { reply } of refused) {
    expect(reply).toMatchObject({ status: 429, body: { code: "cap_reached" } });
    expect(Number(reply.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(Number(reply.headers.get("retry-after"))).toBeLessThanOrEqual(DAY_MS / 1_000);
  }
  // A retry of a finished redeem is not counted again.
  expect(await tills[0].redeem(redeemed[0] ?? {})).toMatchObject({ status: 200, body: { alreadyConfirmed: true } });
  expect((await tills[1].lookUp(refused[0]?.order.code as string)).body.voucher.status).toBe("Active");
});

it("a key's daily limit in dollars counts the prices of the vouchers", async () => {
  const { priceUsd } = (await makeCapped({}).then(async ({ tills }) => {
    const [voucher] = await issueVouchers(db, partner, 1);
    return (await tills[0].lookUp(voucher?.code as string)).body.voucher;
  })) as { priceUsd: number };
  const { tills } = await makeCapped({ maxAmountPerDayUsd: 3 * priceUsd + 0.01 });
  expect((await redeemAtOnce(tills, 12, "value")).redeemed).toHaveLength(3);
});

it("a worker refuses redeem jobs over a daily limit that the API did not know, and decides the others", async () => {
  const capped = await Promise.all([1, 2, 3, 4].map(() => makeCapped({ maxPerDay: 1 })));
  const free = await makeCapped({});
  for (const { tills } of capped) await redeemAtOnce(tills, 1, `known-${crypto.randomUUID()}`);
  const vouchers = await issueVouchers(db, partner, 5);
  const redeemAll = (name: string) =>
    Promise.all(
      [...capped, free].map(async ({ id }, n) => {
        const job = redeemJob(partner, id, vouchers[n]?.id as string, `${name}-${n}`);
        return (await runRedeemJob(worker, newAttempt(job.voucherId), job)).kind;
      }),
    );
  expect(await redeemAll("unknown")).toEqual([...capped.map(() => "over_cap"), "redeemed"]);
  for (const { id } of capped) await change(id, { maxPerDay: "none" });
  expect((await redeemAll("removed")).slice(0, capped.length)).toEqual(capped.map(() => "redeemed"));
});

it("a redeem waits for no other redeem of its key once the key has no daily limit", async () => {
  const { id, tills } = await makeCapped({ maxPerDay: 1 });
  await redeemAtOnce(tills, 1, "only");
  const vouchers = await issueVouchers(db, partner, 3);
  const redeem = async (n: number) => {
    const job = redeemJob(partner, id, vouchers[n]?.id as string, `freed-${n}`);
    return (await runRedeemJob(worker, newAttempt(job.voucherId), job)).kind;
  };
  expect(await redeem(0)).toBe("over_cap");
  await change(id, { maxPerDay: "none" });
  expect(await redeem(1)).toBe("redeemed");
  await besideTransaction(db, async (outside) => {
    await outside.query("SELECT pg_advisory_xact_lock_shared(key_cap_lock($1))", [id]);
    expect(await redeem(2)).toBe("redeemed");
  });
});

it("a new daily limit counts all of the key's redemptions today, including one that is not committed yet", async () => {
  const { id, tills } = await makeCapped({});
  expect((await redeemAtOnce(tills, 2, "before")).redeemed).toHaveLength(2);
  const [voucher] = await issueVouchers(db, partner, 1);
  const { changing } = await besideTransaction(db, async (outside) => {
    await outside.query(
      `INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, redeem_code, external_ref)
       VALUES (date_trunc('milliseconds', clock_timestamp()), $1, $2, $3, 'attempt', 'CODE', 'under-way')`,
      [voucher?.id, partner.organizationId, id],
    );
    const changing = change(id, { maxPerDay: 4 });
    await untilWaiting(db, 1);
    await outside.query("COMMIT");
    return { changing };
  });
  expect(await changing).toEqual({ id, maxPerDay: 4, maxAmountPerDayUsd: null });
  // Deletes the row, because the file ends with a check that each redemption has an event.
  await bypassTriggers(db, "DELETE FROM redemptions WHERE external_ref = $1", ["under-way"]);
  // Each API learns within half a second that the cap is reached. Until then, the database refuses.
  const { redeemed, refused } = await redeemAtOnce(tills, 20, "learn");
  expect(redeemed).toHaveLength(1);
  expect(new Set(refused.map(({ reply }) => reply.body.code))).toEqual(new Set(["cap_reached"]));
  const { rows } = await db.query("SELECT redemptions FROM key_days WHERE key_id = $1", [id]);
  expect(rows).toEqual([{ redemptions: 4 }]);
  expect(await change(id, { maxPerDay: "none", maxAmountPerDayUsd: 1_000 })).toMatchObject({ maxPerDay: null });
  expect((await redeemAtOnce(tills, 3, "after")).redeemed).toHaveLength(3);
});

it("the redemptions table has only one unconditional AFTER INSERT trigger", async () => {
  const { rows } = await db.query(
    `SELECT t.tgname AS name FROM pg_trigger AS t
      WHERE t.tgrelid = 'redemptions'::regclass AND NOT t.tgisinternal AND t.tgqual IS NULL
        AND pg_get_triggerdef(t.oid) LIKE '%AFTER INSERT%'`,
  );
  expect(rows).toEqual([{ name: "redemptions_checked" }]);
});

it("a change of a key's daily limits must name at least one limit", async () => {
  const { id } = await makeCapped({});
  await expect(change(id, {})).rejects.toThrow(InvalidValues);
});

it("the overview lists keys that have used 80 % of a daily limit", async () => {
  const { id, tills } = await makeCapped({ maxPerDay: 5 });
  const found = async () => (await selectUsedCaps(db, 100)).find(({ keyId }) => keyId === id);
  await redeemAtOnce(tills, 3, "few");
  expect(await found()).toBeUndefined();
  await redeemAtOnce(tills, 1, "most");
  expect(await found()).toMatchObject({ organizationId: partner.organizationId, isReached: false });
  await redeemAtOnce(tills, 1, "all");
  expect(await found()).toMatchObject({ isReached: true });
});
