import { beforeAll, describe, expect, it, vi } from "vitest";
import { partnerClient, type Reply, send } from "../support/client.ts";
import {
  inSeconds,
  makeContract,
  makeOffer,
  newUser,
  type Offered,
  offerBatch,
  outcome,
  reservationVouchers,
  signedIn,
} from "../support/marketplace.ts";
import { besideTransaction, countWaiting, untilWaiting } from "../support/outside-transaction.ts";
import { dumpRows } from "../support/row-dump.ts";
import { issueVoucher, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const { api, servers, issuer: key, anyone } = useService({ users: true });

it("GET /marketplace/listings/{id} returns product, prices, remaining vouchers and canBuy", async () => {
  const validUntil = new Date("2099-12-31T23:59:59.500Z");
  const offer = await makeOffer(servers.db, 3, { validUntil });
  // A listing shows the terms at the batch's issue, so this later change of the product has no effect.
  await servers.db.query("UPDATE products SET price_usd = 1, retail_price_usd = 2, benefit_months = 9 WHERE id = $1", [
    offer.productId,
  ]);
  const before = await dumpRows(servers.db);
  const reply = await anyone.listing(offer.listingId);
  await anyone.listings();
  expect(await dumpRows(servers.db)).toEqual(before);
  expect({ status: reply.status, body: reply.body }).toStrictEqual({
    status: 200,
    body: {
      id: offer.listingId,
      productId: offer.productId,
      productName: "Pass",
      productKey: "pass",
      type: "Subscription",
      brand: expect.stringMatching(/^Brand \d+$/),
      retailPriceUsd: 50,
      priceUsd: 40.25,
      benefitMonths: 6,
      usageUnitLabel: "visit",
      audience: "OpenToAll",
      referrerOnly: false,
      available: 3,
      availableMore: false,
      validUntil: "2099-12-31T23:59:59.500Z",
      canBuy: true,
    },
  });
  expect(reply.headers.get("cache-control")).toBe("no-store");
  expect(reply.headers.get("www-authenticate")).toBeNull();
});

it("GET /marketplace/listings/{id} counts only vouchers that users can buy", async () => {
  const offer = await makeOffer(servers.db, 5);
  const ids = offer.vouchers.map(({ id }) => id);
  const count = async () => (await anyone.listing(offer.listingId)).body.available;
  await reservationVouchers(servers.db, ids.slice(0, 1), inSeconds(600));
  await reservationVouchers(servers.db, ids.slice(1, 2), inSeconds(-1));
  expect(await count()).toBe(4);
  expect(outcome(await (await signedIn(api.url, key)).buyListing(offer.listingId))).toBe("200");
  expect(await count()).toBe(3);
  await servers.db.query("UPDATE vouchers SET status = 'Voided', pickable = false WHERE id = $1", [ids[4]]);
  expect(await count()).toBe(2);
  await servers.db.query("UPDATE batches SET valid_until = now() WHERE id = $1", [offer.batchId]);
  expect(await count()).toBe(0);
});

it("GET /marketplace/listings/{id} counts at most 1 000 remaining vouchers, and says if there are more", async () => {
  const [thousand, more] = [await makeOffer(servers.db, 1_000), await makeOffer(servers.db, 1_002)];
  const count = async ({ listingId }: Offered) => {
    const { available, availableMore } = (await anyone.listing(listingId)).body;
    return { available, availableMore };
  };
  expect(await count(thousand)).toEqual({ available: 1_000, availableMore: false });
  expect(await count(more)).toEqual({ available: 1_000, availableMore: true });
  const ids = more.vouchers.map(({ id }) => id);
  await reservationVouchers(servers.db, ids.slice(500, 501), inSeconds(600));
  expect(await count(more)).toEqual({ available: 1_000, availableMore: true });
  await reservationVouchers(servers.db, ids.slice(0, 1), inSeconds(600));
  expect(await count(more)).toEqual({ available: 1_000, availableMore: false });
  await reservationVouchers(servers.db, ids.slice(1, 2), inSeconds(600));
  expect(await count(more)).toEqual({ available: 999, availableMore: false });
});

it("concurrent pages of listings count each listing's vouchers once, and show a sold-out listing at once", async () => {
  const offer = await makeOffer(servers.db, 3);
  const asked = vi.spyOn(api.ctx.pool, "query");
  const page = async () =>
    (await anyone.listings("?limit=100")).body.listings.find(({ id }: { id: string }) => id === offer.listingId);
  const pages = await Promise.all(Array.from({ length: 20 }, page));
  for (const listing of pages) expect(listing).toMatchObject({ available: 3, canBuy: true });
  await servers.db.query("UPDATE vouchers SET status = 'Voided', pickable = false WHERE batch_id = $1", [
    offer.batchId,
  ]);
  expect(await page()).toMatchObject({ available: 0, canBuy: false });
  const counted = asked.mock.calls.flatMap(([query]) => {
    const { name, values } = query as unknown as { name: string; values: unknown[] };
    return name === "count_available" ? (values[0] as string[]) : [];
  });
  expect(counted.filter((batchId) => batchId === offer.batchId)).toHaveLength(1);
  asked.mockRestore();
});

describe("GET /marketplace/listings", () => {
  async function readAll(limit: number, between: (page: number) => Promise<unknown> = async () => undefined) {
    const pages: string[][] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const { status, body }: Reply = await anyone.listings(`?limit=${limit}&cursor=${encodeURIComponent(cursor)}`);
      expect(status).toBe(200);
      expect(Object.keys(body)).toEqual(["listings", "nextCursor"]);
      expect(body.listings.length).toBeLessThanOrEqual(limit);
      pages.push(body.listings.map(({ id }: { id: string }) => id));
      cursor = body.nextCursor;
      await between(pages.length);
    }
    return pages;
  }

  /** The ids of the listings that the list must show, the oldest first. */
  async function shown(): Promise<string[]> {
    const { rows } = await servers.db.query(
      `SELECT l.id FROM listings l JOIN batches b ON b.id = l.batch_id
        WHERE b.valid_until > clock_timestamp() ORDER BY l.id`,
    );
    return rows.map(({ id }) => id);
  }

  let partner: TestPartner;

  beforeAll(async () => {
    partner = await makePartner(servers.db);
    for (let i = 0; i < 7; i++) {
      await offerBatch(servers.db, partner, 1, {
        audience: i % 2 === 0 ? "OpenToAll" : "ReferrerOnly",
        validUntil: inSeconds(i === 3 ? -60 : 3_600),
        ...(i === 5 && { windows: {} }),
      });
    }
  });

  it.each([
    1, 2, 3, 100,
  ])("GET /marketplace/listings shows every listing once, oldest first, with a page size of %s", async (limit) => {
    const expected = await shown();
    const pages = await readAll(limit);
    expect(pages.flat()).toEqual(expected);
    for (const page of pages.slice(0, -1)) expect(page).toHaveLength(limit);
    expect(pages.at(-1)?.length).toBeGreaterThan(0);
    // A full last page has no next page either.
    expect((await anyone.listings(`?limit=${expected.length}`)).body.nextCursor).toBeNull();
  });

  it("GET /marketplace/listings omits expired listings, but shows listings that the caller cannot buy", async () => {
    const { rows } = await servers.db.query(
      "SELECT l.id FROM listings l JOIN batches b ON b.id = l.batch_id WHERE b.valid_until <= clock_timestamp()",
    );
    const soldOut = await offerBatch(servers.db, partner, 1);
    await (await signedIn(api.url, key)).buyListing(soldOut.listingId);
    const { listings } = (await anyone.listings("?limit=100")).body;
    const ids = listings.map(({ id }: { id: string }) => id);
    expect(rows.length).toBeGreaterThan(0);
    for (const { id } of rows) expect(ids).not.toContain(id);
    expect(listings.filter((one: { referrerOnly: boolean }) => one.referrerOnly).length).toBeGreaterThanOrEqual(2);
    expect(listings).toContainEqual(expect.objectContaining({ id: soldOut.listingId, available: 0, canBuy: false }));
  });

  it("GET /marketplace/listings shows each listing as GET /marketplace/listings/{id} does", async () => {
    const user = newUser();
    await makeContract(servers.db, partner.brandId, user);
    for (const client of [anyone, await signedIn(api.url, key, user)]) {
      for (const listing of (await client.listings("?limit=100")).body.listings) {
        expect((await client.listing(listing.id)).body).toEqual(listing);
      }
    }
  });

  it("GET /marketplace/listings neither skips nor repeats a listing while others are added and removed", async () => {
    const before = await shown();
    let last = "";
    const pages = await readAll(2, async (page) => {
      if (page === 1) last = (await offerBatch(servers.db, partner, 1)).listingId;
      if (page === 2)
        await servers.db.query(
          "UPDATE batches SET valid_until = now() WHERE id = (SELECT batch_id FROM listings WHERE id = $1)",
          [before[3]],
        );
    });
    expect(pages.flat()).toEqual([...before, last]);
  });

  it("GET /marketplace/listings shows 20 listings by default and up to 100", async () => {
    while ((await shown()).length < 21) await offerBatch(servers.db, partner, 1);
    expect((await anyone.listings()).body.listings).toHaveLength(20);
    expect((await anyone.listings("?cursor=")).body).toEqual((await anyone.listings()).body);
    expect((await anyone.listings("?unknown=1&limit=100")).status).toBe(200);
  });

  it.each([
    ...["limit=0", "limit=101", "limit=1.5", "limit=", "limit=1e1", "limit=5&limit=6", "limit=%00"],
    ...["cursor=a&cursor=b", `cursor=${"x".repeat(129)}`, "cursor=%00"],
  ])("GET /marketplace/listings refuses ?%s with 400 and names the parameter", async (query) => {
    const { status, body } = await anyone.listings(`?${query}`);
    const error = expect.stringMatching(`^${query.split("=")[0]} .*\\.$`);
    expect({ status, body }).toEqual({
      status: 400,
      body: { error, code: "invalid_request", requestId: expect.any(String) },
    });
  });
});

it("anonymous reads from one address use at most two connections, and the API refuses further reads", async () => {
  const partner = await makePartner(servers.db);
  const { id, code } = await issueVoucher(servers.db, partner);
  const till = partnerClient(api.url, (await makeKey(servers.db, partner.organizationId)).key);
  const paths = ["/marketplace/listings", `/integrity/events/VoucherInstance/${id}`];
  const asked = await besideTransaction(servers.db, async (outside) => {
    await outside.query("LOCK TABLE listings, voucher_events IN ACCESS EXCLUSIVE MODE");
    const asking = Array.from({ length: 120 }, (_, n) => send("GET", `${api.url}${paths[n % 2]}`));
    await untilWaiting(servers.db, 2, "api");
    for (let i = 0; i < 20; i++) {
      expect((await till.lookUp(code)).status).toBe(200);
      expect(await countWaiting(servers.db, "api")).toBeLessThanOrEqual(2);
    }
    return asking;
  });
  const codes = new Set((await Promise.all(asked)).map(({ body }) => body.code));
  expect(codes).toContain("overloaded");
});
