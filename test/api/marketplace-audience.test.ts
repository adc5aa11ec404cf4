import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ContractStatus } from "../../src/domain/audience.ts";
import { AUDIENCES } from "../../src/domain/voucher.ts";
import type { IssueInput } from "../../src/services/admin/issue-batch.ts";
import { runNode } from "../support/child-process.ts";
import type { Reply } from "../support/client.ts";
import {
  inSeconds,
  type MarketClient,
  makeContract,
  makeMember,
  makeOffer,
  makeReferral,
  marketClient,
  newUser,
  type Offered,
  offerBatch,
  outcome,
  reservationVouchers,
} from "../support/marketplace.ts";
import { makePartner, type TestPartner } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const { api, servers, as } = useService({ users: true });

type Offer = TestPartner & Offered;

/** The three routes that reach supply without a referrer. */
const ROUTES: [name: string, take: (client: MarketClient, offer: Offer) => Promise<Reply>][] = [
  ["POST /marketplace/listings/{id}/buy", (client, { listingId }) => client.buyListing(listingId)],
  ["POST /products/{id}/claim", (client, { productId }) => client.claimProduct(productId)],
  ["POST /products/{id}/buy", (client, { productId }) => client.buyProduct(productId)],
];

/** Expects that canBuy and all three routes agree about a caller; nothing is taken where they are to refuse. */
async function expectOpen(offer: Offer, client: MarketClient, expected: boolean): Promise<void> {
  const answers: Record<string, unknown> = { canBuy: (await client.listing(offer.listingId)).body.canBuy };
  for (const [name, take] of ROUTES) answers[name] = outcome(await take(client, offer));
  const refused = "403 referrers_only";
  expect(answers).toEqual({
    canBuy: expected,
    ...Object.fromEntries(ROUTES.map(([name]) => [name, expected ? "200" : refused])),
  });
}

const referrersOnly = (count: number) => makeOffer(servers.db, count, { audience: "ReferrerOnly" });

describe("the referrer-only rules", () => {
  it("1. a ReferrerOnly listing stays visible to everyone, and its canBuy is computed for the caller", async () => {
    const offer = await referrersOnly(1);
    const referrer = newUser();
    await makeContract(servers.db, offer.brandId, referrer);
    for (const [client, canBuy] of [
      [marketClient(api.url, null), false],
      [await as(), false],
      [await as(referrer), true],
    ] as const) {
      const alone = await client.listing(offer.listingId);
      expect(alone).toMatchObject({
        status: 200,
        body: { id: offer.listingId, audience: "ReferrerOnly", referrerOnly: true, available: 1, canBuy },
      });
      const { body } = await client.listings("?limit=100");
      expect(body.listings).toContainEqual(alone.body);
    }
  });

  it("2. a contract that is Active and not past its end opens the supply, and one past its end does not", async () => {
    const offer = await referrersOnly(6);
    const [endless, running, over] = [newUser(), newUser(), newUser()];
    await makeContract(servers.db, offer.brandId, endless);
    await makeContract(servers.db, offer.brandId, running, "Active", inSeconds(600));
    await makeContract(servers.db, offer.brandId, over, "Active", inSeconds(-1));
    await expectOpen(offer, await as(over), false);
    await expectOpen(offer, await as(endless), true);
    await expectOpen(offer, await as(running), true);
  });

  it.each<ContractStatus>([
    "Offered",
    "Ended",
    "Declined",
  ])("3. a contract that is %s does not open it", async (status) => {
    const offer = await referrersOnly(3);
    const user = newUser();
    await makeContract(servers.db, offer.brandId, user, status);
    await expectOpen(offer, await as(user), false);
    await makeContract(servers.db, offer.brandId, newUser(), "Active");
    await expectOpen(offer, await as(user), false);
  });

  it("4. a contract with a different brand opens nothing, nor does one with another brand of the same owner", async () => {
    const offer = await referrersOnly(3);
    const user = newUser();
    const other = await makePartner(servers.db);
    await makeContract(servers.db, other.brandId, user);
    const { rows } = await servers.db.query(
      "INSERT INTO brands (id, organization_id, name) VALUES ('brd_sister_' || $1, $2, 'Sister') RETURNING id",
      [user, offer.organizationId],
    );
    await makeContract(servers.db, rows[0].id, user);
    await expectOpen(offer, await as(user), false);
  });

  it("5. the brand's own owner is never locked out of its own supply; an employee and another brand's owner are", async () => {
    const offer = await referrersOnly(6);
    const [owner, contracted, employee, stranger] = [newUser(), newUser(), newUser(), newUser()];
    await makeMember(servers.db, offer.organizationId, owner, "owner");
    await makeMember(servers.db, offer.organizationId, contracted, "owner");
    await makeContract(servers.db, offer.brandId, contracted, "Ended");
    await makeMember(servers.db, offer.organizationId, employee, "employee");
    await makeMember(servers.db, (await makePartner(servers.db)).organizationId, stranger, "owner");
    await expectOpen(offer, await as(employee), false);
    await expectOpen(offer, await as(stranger), false);
    await expectOpen(offer, await as(owner), true);
    await expectOpen(offer, await as(contracted), true);
  });

  it("6. batches default to OpenToAll, in the table as in voucherctl", async () => {
    const partner = await makePartner(servers.db);
    const ctl = async (...args: string[]) => {
      const env = { DATABASE_URL: servers.adminUrl, REDIS_URL: servers.redisUrl };
      return JSON.parse((await runNode(["src/cli/main.ts", ...args, "--json"], env)).stdout).id;
    };
    const issue = ["batch", "issue", "--product", partner.productId, "--count", "3", "--valid-until", "2099-01-01"];
    const batchId = await ctl(...issue, "--claim", "--buy");
    const listingId = await ctl("listing", "create", "--batch", batchId);
    await expectOpen({ ...partner, batchId, listingId, vouchers: [] }, await as(), true);
    const { rows } = await servers.db.query(
      `INSERT INTO batches (id, product_id, voucher_count, valid_until, retail_price_usd, price_usd, benefit_months)
       VALUES ('bat_default', $1, 1, 'infinity', 1, 1, 0) RETURNING audience`,
      [partner.productId],
    );
    expect(rows).toEqual([{ audience: "OpenToAll" }]);
  });

  it("the referrer's own link stays open to every signed-in user, and takes from both audiences", async () => {
    for (const audience of AUDIENCES) {
      const offer = await makeOffer(servers.db, 1, { audience });
      const { code } = await makeReferral(servers.db, offer);
      expect(outcome(await (await as()).claimByLink(code))).toBe("200");
    }
  });
});

/** Everything that a user may be to a brand. */
const CALLERS = [
  "stranger",
  "owner",
  "employee",
  "Offered",
  "Active",
  "ActiveUntilLater",
  "ActivePastEnd",
  "Ended",
  "Declined",
  "otherBrand",
  "otherOwner",
] as const;
type Caller = (typeof CALLERS)[number];
const ADMITTED: readonly Caller[] = ["owner", "Active", "ActiveUntilLater"];

async function makeCaller(partner: TestPartner, other: TestPartner, caller: Caller): Promise<string> {
  const user = newUser(caller);
  const contract = (status: ContractStatus, endsAt: Date | null = null) =>
    makeContract(servers.db, partner.brandId, user, status, endsAt);
  switch (caller) {
    case "stranger":
      break;
    case "owner":
    case "employee":
      await makeMember(servers.db, partner.organizationId, user, caller);
      break;
    case "otherOwner":
      await makeMember(servers.db, other.organizationId, user, "owner");
      break;
    case "otherBrand":
      await makeContract(servers.db, other.brandId, user);
      break;
    case "ActiveUntilLater":
      await contract("Active", inSeconds(3_600));
      break;
    case "ActivePastEnd":
      await contract("Active", inSeconds(-3_600));
      break;
    default:
      await contract(caller);
  }
  return user;
}

/** Hours from now at which a window opens and closes; what such a window is. */
const WINDOWS: Record<string, { buy: IssueInput["windows"]["buy"] | null; open: boolean }> = {
  none: { buy: null, open: false },
  always: { buy: { opensAt: null, closesAt: null }, open: true },
  now: { buy: { opensAt: inSeconds(-3_600), closesAt: inSeconds(3_600) }, open: true },
  later: { buy: { opensAt: inSeconds(3_600), closesAt: null }, open: false },
  over: { buy: { opensAt: null, closesAt: inSeconds(-3_600) }, open: false },
};

it("canBuy is true exactly when buy is refused for neither audience nor window nor supply, for every caller", async () => {
  const partner = await makePartner(servers.db);
  const other = await makePartner(servers.db);
  const clients = new Map<Caller | "anonymous", MarketClient>([["anonymous", marketClient(api.url, null)]]);
  for (const caller of CALLERS) clients.set(caller, await as(await makeCaller(partner, other, caller)));
  const stranger = await as();

  const seen = new Set<string>();
  // Random offers alone would miss an outcome in one run of 200.
  const offered = { audience: "ReferrerOnly", valid: true, left: 1, held: 0, withClaims: false } as const;
  const callers: Caller[] = ["owner", "Active", "stranger"];
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        audience: fc.constantFrom(...AUDIENCES),
        window: fc.constantFrom(...Object.keys(WINDOWS)),
        valid: fc.oneof({ weight: 5, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
        left: fc.integer({ min: 0, max: 4 }),
        held: fc.integer({ min: 0, max: 2 }),
        withClaims: fc.boolean(),
        callers: fc.shuffledSubarray([...clients.keys()], { minLength: 6 }),
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
        for (const caller of callers) {
          const client = clients.get(caller) as MarketClient;
          const { canBuy } = (await client.listing(listingId)).body;
          const answer = outcome(await (caller === "anonymous" ? stranger : client).buyListing(listingId));
          const admitted = audience === "OpenToAll" || ADMITTED.includes(caller as Caller);
          const expected =
            !open || !valid
              ? "409 window_closed"
              : !admitted
                ? "403 referrers_only"
                : supply === 0
                  ? "409 sold_out"
                  : "200";
          expect({ caller, canBuy, answer }).toEqual({ caller, canBuy: answer === "200", answer: expected });
          if (answer === "200") supply -= 1;
          seen.add(answer);
        }
      },
    ),
    {
      numRuns: 30,
      examples: [[{ ...offered, window: "always", callers }], [{ ...offered, window: "none", callers }]],
    },
  );
  // All of it was there to be seen.
  expect([...seen].sort()).toEqual(["200", "403 referrers_only", "409 sold_out", "409 window_closed"]);
});
