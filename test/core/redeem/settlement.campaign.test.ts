import pLimit from "p-limit";
import { expect, it } from "vitest";
import { OutcomeUnknown, voucherClient } from "#client/index.ts";
import { issueVouchers, makeKey } from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

/** More than two pages. */
const REDEMPTIONS = 2_500;

const { api, servers, partner, till } = useService();

it("the typed client adds up a day's redemptions to the cent, and lists each reference once", async () => {
  const { key: apiKey } = await makeKey(servers.db, partner.organizationId);
  const client = voucherClient({ baseUrl: `${api.url}/`, apiKey });
  const vouchers = await issueVouchers(servers.db, partner, REDEMPTIONS);
  const atOnce = pLimit(64);
  const redeem = async ({ code }: { code: string }, index: number) => {
    const order = { code, externalRef: `order-${index}` };
    await until(async () => {
      const { status } = await till.redeem(order);
      // A partner repeats a 503.
      expect([200, 503]).toContain(status);
      return status === 200;
    });
  };
  const from = new Date(Date.now() - 3_600_000).toISOString();
  await Promise.all(vouchers.map((voucher, index) => atOnce(redeem, voucher, index)));
  const { rows } = await servers.db.query(
    `SELECT count(*)::int AS count, (sum(b.price_usd) * 100)::int AS cents, max(rd.redeemed_at) + interval '1 ms' AS to
       FROM redemptions AS rd JOIN vouchers AS v ON v.id = rd.voucher_id JOIN batches AS b ON b.id = v.batch_id`,
  );
  const [{ count, cents, to }] = rows as [{ count: number; cents: number; to: Date }];
  expect(count).toBe(REDEMPTIONS);
  const settle = async () => {
    const settled = { cents: 0, refs: [] as string[] };
    for await (const { externalRef, discountPriceUsd } of client.redemptions(from, to.toISOString())) {
      settled.cents += Math.round(discountPriceUsd * 100);
      settled.refs.push(externalRef);
    }
    return settled;
  };
  // `settle` fails with OutcomeUnknown while the list is not complete up to the last redemption.
  const settled = await until(() =>
    settle().catch((error) => {
      expect(error).toBeInstanceOf(OutcomeUnknown);
      return null;
    }),
  );
  expect(settled.cents).toBe(cents);
  expect(new Set(settled.refs).size).toBe(REDEMPTIONS);
  expect(settled.refs).toHaveLength(REDEMPTIONS);
});
