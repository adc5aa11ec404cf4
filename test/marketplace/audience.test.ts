import fc from "fast-check";
import { expect, it } from "vitest";
import type { IssueInput } from "../../src/acts/issue-batch.ts";
import { insertBrand } from "../../src/core/catalog/db/catalog.ts";
import { newId } from "../../src/core/voucher/ids.ts";
import { AUDIENCES } from "../../src/core/voucher/voucher.ts";
import type { ContractStatus } from "../../src/marketplace/audience.ts";
import type { Reply } from "../support/client.ts";
import {
  inSeconds,
  type MarketClient,
  makeContract,
  makeMember,
  makeOffer,
  marketClient,
  newUser,
  type Offered,
  offerBatch,
  outcome,
  reservationVouchers,
} from "../support/marketplace.ts";
import { makePartner, type TestPartner } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";
import { openVoucherctl } from "../support/voucherctl.ts";

const { api, servers, as } = useService({ users: true });

type Offer = TestPartner & Offered;

/** The three routes by which a user gets a voucher without a referrer's link. */
const ROUTES: [name: string, take: (client: MarketClient, offer: Offer) => Promise<Reply>][] = [
  ["POST /marketplace/listings/{id}/buy", (client, { listingId }) => client.buyListing(listingId)],
  ["POST /products/{id}/claim", (client, { productId }) => client.claimProduct(productId)],
  ["POST /products/{id}/buy", (client, { productId }) => client.buyProduct(productId)],
];

const contract =
  (status: ContractStatus, endsAt: Date | null = null) =>
  (user: string, { brandId }: TestPartner): Promise<unknown> =>
    makeContract(servers.db, brandId, user, status, endsAt);
const member =
  (role: "owner" | "employee") =>
  (user: string, { organizationId }: TestPartner): Promise<unknown> =>
    makeMember(servers.db, { organizationId, userId: user, role });

/** Every relation of a user to a brand: whether the user may acquire its ReferrerOnly vouchers, and by which rule. */
const CALLERS: Record<string, [isOpen: boolean, make: (user: string, of: TestPartner) => Promise<unknown>]> = {
  "a stranger": [false, async () => undefined],
  "an owner": [true, member("owner")],
  "an owner with an Ended contract": [true, (...at) => Promise.all([member("owner")(...at), contract("Ended")(...at)])],
  "an employee": [false, member("employee")],
  "the owner of another brand": [false, async (user) => member("owner")(user, await makePartner(servers.db))],
  "a referrer with an Offered contract": [false, contract("Offered")],
  "a referrer with an Active contract": [true, contract("Active")],
  "a referrer with an Active contract that ends later": [true, contract("Active", inSeconds(3_600))],
  "a referrer with an Active contract past its end": [false, contract("Active", inSeconds(-3_600))],
  "a referrer with an Ended contract": [false, contract("Ended")],
  "a referrer with a Declined contract": [false, contract("Declined")],
  "another brand's referrer": [false, async (user) => contract("Active")(user, await makePartner(servers.db))],
  "the referrer of another brand of its owner": [
    false,
    async (user, partner) => {
      const brandId = newId("brd");
      await insertBrand(servers.db, { id: brandId, organizationId: partner.organizationId, name: "Sister" });
      await contract("Active")(user, { ...partner, brandId });
    },
  ],
};

it.each(
  Object.entries(CALLERS),
)("a ReferrerOnly listing is visible to %s, and open only to its brand's owners and active referrers", async (_who, [
  canBuy,
  make,
]) => {
  const offer = await makeOffer(servers.db, 3, { audience: "ReferrerOnly" });
  const user = newUser();
  await make(user, offer);
  const client = await as(user);
  for (const [each, isOpen] of [
    [client, canBuy],
    [marketClient(api.url, null), false],
  ] as const) {
    const alone = await each.listing(offer.listingId);
    const shown = { id: offer.listingId, audience: "ReferrerOnly", referrerOnly: true, available: 3, canBuy: isOpen };
    expect(alone).toMatchObject({ status: 200, body: shown });
    expect((await each.listings("?limit=100")).body.listings).toContainEqual(alone.body);
  }
  await expectOpen(offer, client, canBuy);
});

it("a batch is OpenToAll by default, both in the table and in voucherctl", async () => {
  const partner = await makePartner(servers.db);
  const voucherctl = openVoucherctl(servers);
  const issue = "batch issue --count 3 --valid-until 2099-01-01 --claim --buy";
  const { id: batchId } = await voucherctl.json(`${issue} --product ${partner.productId}`);
  const { id: listingId } = await voucherctl.json(`listing create --batch ${batchId}`);
  await expectOpen({ ...partner, batchId, listingId, vouchers: [] }, await as(), true);
  const { rows } = await servers.db.query(
    `INSERT INTO batches (id, product_id, voucher_count, valid_until, retail_price_usd, price_usd, benefit_months)
     VALUES ('bat_default', $1, 1, 'infinity', 1, 1, 0) RETURNING audience`,
    [partner.productId],
  );
  expect(rows).toEqual([{ audience: "OpenToAll" }]);
});

/** Windows for buying, by name, and whether each is open now. A null time sets no limit. */
const WINDOWS: Record<string, { buy: IssueInput["windows"]["buy"] | null; open: boolean }> = {
  none: { buy: null, open: false },
  always: { buy: { opensAt: null, closesAt: null }, open: true },
  now: { buy: { opensAt: inSeconds(-3_600), closesAt: inSeconds(3_600) }, open: true },
  later: { buy: { opensAt: inSeconds(3_600), closesAt: null }, open: false },
  over: { buy: { opensAt: null, closesAt: inSeconds(-3_600) }, open: false },
};

it("canBuy is true exactly when no audience, window or sold-out batch would refuse the user's buy", async () => {
  const partner = await makePartner(servers.db);
  const clients: [admitted: boolean, client: MarketClient, buyer: MarketClient][] = [
    [false, marketClient(api.url, null), await as()],
  ];
  for (const [admitted, make] of Object.values(CALLERS)) {
    const user = newUser();
    await make(user, partner);
    const client = await as(user);
    clients.push([admitted, client, client]);
  }

  const seen = new Set<string>();
  // Some fixed offers, because random ones alone would miss an outcome in one of 200 runs.
  const offered = { audience: "ReferrerOnly", valid: true, left: 1, held: 0, withClaims: false } as const;
  const example = (window: string) => ({ ...offered, window, callers: clients });
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        audience: fc.constantFrom(...AUDIENCES),
        window: fc.constantFrom(...Object.keys(WINDOWS)),
        valid: fc.oneof({ weight: 5, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
        left: fc.integer({ min: 0, max: 4 }),
        held: fc.integer({ min: 0, max: 2 }),
        withClaims: fc.boolean(),
        callers: fc.shuffledSubarray(clients, { minLength: 6 }),
      }),
      async ({ audience, window, valid, left, held, withClaims, callers }) => {
        const { buy, open } = WINDOWS[window] as (typeof WINDOWS)[string];
        const { listingId, vouchers } = await offerBatch(servers.db, partner, left + held + 1, {
          audience,
          validUntil: inSeconds(valid ? 7_200 : -1),
          windows: { ...(buy && { buy }), ...(withClaims && { claim: { opensAt: null, closesAt: null } }) },
        });
        const ids = vouchers.map(({ id }) => id);
        await reservationVouchers(servers.db, ids.slice(0, held), inSeconds(900));
        await servers.db.query("UPDATE vouchers SET status = 'Voided', pickable = false WHERE id = $1", [ids.at(-1)]);
        let supply = left;
        for (const [admitted, client, buyer] of callers) {
          const { canBuy } = (await client.listing(listingId)).body;
          const answer = outcome(await buyer.buyListing(listingId));
          const expected =
            !open || !valid
              ? "409 window_closed"
              : audience !== "OpenToAll" && !admitted
                ? "403 referrers_only"
                : supply === 0
                  ? "409 sold_out"
                  : "200";
          expect({ canBuy, answer }).toEqual({ canBuy: answer === "200", answer: expected });
          if (answer === "200") supply -= 1;
          seen.add(answer);
        }
      },
    ),
    { numRuns: 10, examples: [[example("always")], [example("none")]] },
  );
  // Checks that the offers above led to every outcome.
  expect([...seen].sort()).toEqual(["200", "403 referrers_only", "409 sold_out", "409 window_closed"]);
});

/** Expects that canBuy and all three routes agree for a caller, and that a refusal takes no voucher. */
async function expectOpen(offer: Offer, client: MarketClient, expected: boolean): Promise<void> {
  expect((await client.listing(offer.listingId)).body.canBuy).toBe(expected);
  for (const [name, take] of ROUTES)
    expect(outcome(await take(client, offer)), name).toBe(expected ? "200" : "403 referrers_only");
}
