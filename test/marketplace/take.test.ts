import { describe, expect, it } from "vitest";
import { endContract } from "../../src/marketplace/acts.ts";
import { partnerClient, type Reply } from "../support/client.ts";
import {
  inSeconds,
  type MarketClient,
  makeContract,
  makeMember,
  makeOffer,
  makeReferral,
  newPayment,
  newUser,
  type Offered,
  OPEN,
  offerBatch,
  outcome,
  readAcquisitions,
  reservationVouchers,
} from "../support/marketplace.ts";
import { bypassTriggers } from "../support/outside-transaction.ts";
import { dumpRows } from "../support/row-dump.ts";
import { sealVoucher } from "../support/seal-voucher.ts";
import { makeKey, makePartner, provisioning, type TestPartner } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const { api, servers, as } = useService({ users: true });

interface TakeRoute {
  name: string;
  kind: "claim" | "buy";
  take(client: MarketClient, supply: Supply, body?: unknown): Promise<Reply>;
}

const ROUTES: TakeRoute[] = [
  {
    name: "/marketplace/listings/{id}/buy",
    kind: "buy",
    take: (client, { listingId }, body) => client.buyListing(listingId, body),
  },
  {
    name: "/products/{id}/buy",
    kind: "buy",
    take: (client, { productId }, body) => client.buyProduct(productId, body),
  },
  {
    name: "/products/{id}/claim",
    kind: "claim",
    take: (client, { productId }, body) => client.claimProduct(productId, body),
  },
  {
    name: "/r/{id}/claim",
    kind: "claim",
    take: (client, { linkCode }, body) => client.claimByLink(linkCode, body),
  },
];
const BUYS = ROUTES.filter(({ kind }) => kind === "buy");
const CLAIMS = ROUTES.filter(({ kind }) => kind === "claim");

describe.each(ROUTES)("POST $name", ({ name, kind, take }) => {
  it(`POST ${name} returns the voucher with the next serial, the fields of a look-up and the verifyUrl`, async () => {
    const supply = await makeSupply(2);
    const [issued, next] = supply.vouchers;
    const reply = await take(await as(), supply);
    const till = partnerClient(api.url, (await makeKey(servers.db, supply.organizationId)).key);
    const { voucher, verifyUrl } = (await till.lookUp(issued?.code ?? "")).body;
    expect({ status: reply.status, body: reply.body }).toStrictEqual({
      status: 200,
      body: { voucher, alreadyConfirmed: false, verifyUrl },
    });
    expect(voucher).toMatchObject({ id: issued?.id, serial: 1, status: "Active" });
    expect(reply.headers.get("cache-control")).toBe("no-store");
    expect(reply.headers.get("www-authenticate")).toBeNull();
    expect((await take(await as(), supply)).body.voucher.id).toBe(next?.id);
  });

  it(`POST ${name} answers a repeated request with the same voucher, even if the offer has changed`, async () => {
    const supply = await makeSupply(2, { audience: "ReferrerOnly" });
    const user = newUser();
    const client = await as(user);
    await makeMember(servers.db, { organizationId: supply.organizationId, userId: user, role: "owner" });
    const body = kind === "buy" ? { paymentRef: newPayment() } : undefined;
    const first = await take(client, supply, body);
    expect(first).toMatchObject({ status: 200, body: { alreadyConfirmed: false } });
    const repeats = async () => {
      const before = await dumpSealed();
      const again = await take(client, supply, body);
      expect({ status: again.status, body: again.body }).toEqual({
        status: 200,
        body: { ...first.body, alreadyConfirmed: true },
      });
      expect(await dumpRows(servers.db)).toEqual(before);
    };
    await repeats();
    await servers.db.query("DELETE FROM members WHERE user_id = $1", [user]);
    await endContract.run(provisioning(servers.db), supply.contractId, {});
    await repeats();
    await servers.db.query("UPDATE vouchers SET pickable = false, status = 'Voided' WHERE id = $1", [
      supply.vouchers[1]?.id,
    ]);
    await repeats();
    await servers.db.query("UPDATE batch_windows SET closes_at = now() WHERE batch_id = $1", [supply.batchId]);
    await repeats();
    const till = partnerClient(api.url, (await makeKey(servers.db, supply.organizationId)).key);
    const { redeemedAt } = (await till.redeem({ code: first.body.voucher.code, externalRef: newPayment() })).body;
    expect((await take(client, supply, body)).body.voucher).toMatchObject({ status: "Redeemed", redeemedAt });
  });

  it(`POST ${name} answers sold_out when no voucher is left, and window_closed outside a batch's window`, async () => {
    const client = await as();
    const soldOut = await makeSupply(1);
    await take(await as(), soldOut);
    await expectRefused(409, "sold_out", () => take(client, soldOut));
    const other = kind === "claim" ? "buy" : "claim";
    for (const windows of [
      { ...OPEN, [kind]: { opensAt: inSeconds(60), closesAt: null } },
      { ...OPEN, [kind]: { opensAt: null, closesAt: inSeconds(-1) } },
      { [other]: { opensAt: null, closesAt: null } },
      {},
    ]) {
      const supply = await makeSupply(1, { windows });
      await expectRefused(409, "window_closed", () => take(client, supply));
    }
    const expired = await makeSupply(1, { validUntil: inSeconds(-1) });
    await expectRefused(409, "window_closed", () => take(client, expired));
  });

  it(`POST ${name} skips a reserved voucher, and gives the voucher out after the reservation's end`, async () => {
    const supply = await makeSupply(2);
    const [held, over] = supply.vouchers.map(({ id }) => id) as [string, string];
    await reservationVouchers(servers.db, [held], inSeconds(600));
    await reservationVouchers(servers.db, [over], inSeconds(-1));
    expect((await take(await as(), supply)).body.voucher.id).toBe(over);
    await expectRefused(409, "sold_out", async () => take(await as(), supply));
    await servers.db.query("UPDATE reservations SET state = 'Released', ended_at = now() WHERE voucher_id = $1", [
      held,
    ]);
    expect((await take(await as(), supply)).body.voucher.id).toBe(held);
  });

  it(`POST ${name} skips and records vouchers with broken chains, and gives out the other vouchers`, async () => {
    const supply = await makeSupply(6);
    const [first, second, third, ...others] = supply.vouchers.map(({ id }) => id) as [string, string, string];
    const damaged = [first, third];
    await servers.db.query(
      `INSERT INTO voucher_events (occurred_at, sequence, voucher_id, seal_status, event_type, data)
       SELECT now(), 2, id, 'Pending', 'voucher.instance.voided', '{}' FROM unnest($1::text[]) AS id`,
      [damaged],
    );
    const users = await Promise.all([as(), as(), as(), as()]);
    const taken = await Promise.all(users.map((user) => take(user, supply)));
    expect(taken.map(outcome)).toEqual(users.map(() => "200"));
    expect(taken.map(({ body }) => body.voucher.id).sort()).toEqual([second, ...others].sort());
    await expectRefused(409, "sold_out", async () => take(await as(), supply));
    const { rows } = await servers.db.query(
      "SELECT voucher_id FROM broken_chains WHERE whole_at IS NULL AND voucher_id = ANY ($1) ORDER BY voucher_id",
      [damaged],
    );
    expect(rows.map(({ voucher_id }) => voucher_id)).toEqual(damaged.toSorted());
    // Repairs the chain like a restore, so that the invariants hold again.
    await bypassTriggers(servers.db, "DELETE FROM voucher_events WHERE voucher_id = ANY ($1) AND sequence = 2", [
      damaged,
    ]);
    await bypassTriggers(servers.db, "UPDATE vouchers SET pickable = true WHERE id = ANY ($1)", [damaged]);
  });
});

describe.each(BUYS)("the paymentRef of POST $name", ({ name, take }) => {
  it(`POST ${name} refuses a missing, blank, long or unprintable paymentRef with 400`, async () => {
    const supply = await makeSupply(1);
    const client = await as();
    const refs = [null, 7, " \t ", "x".repeat(129), "a\u0000b", "a\u0007b"];
    for (const body of ["", ...refs.map((paymentRef) => ({ paymentRef }))]) {
      await expectRefused(400, "invalid_request", async () => {
        const reply = await take(client, supply, body);
        expect(reply.body.error).toMatch(/^paymentRef /);
        return reply;
      });
    }
  });

  it(`POST ${name} accepts a paymentRef of 128 code points, and ignores white space around it`, async () => {
    const supply = await makeSupply(3);
    const client = await as();
    const longest = "🎟".repeat(128);
    expect(await take(client, supply, { paymentRef: longest })).toMatchObject({ status: 200 });
    const first = await take(client, supply, { paymentRef: "Pay-1" });
    expect((await take(client, supply, { paymentRef: "  Pay-1 " })).body).toEqual({
      ...first.body,
      alreadyConfirmed: true,
    });
    expect((await take(client, supply, { paymentRef: "pay-1" })).body).toMatchObject({ alreadyConfirmed: false });
  });
});

describe("a payment", () => {
  it("one paymentRef buys one voucher, over both buy routes and all products of an organization", async () => {
    const one = await makeSupply(2);
    const sister = { ...one, productId: await makeSister(one) };
    const other = { ...sister, ...(await offerBatch(servers.db, sister, 2)) };
    const client = await as();
    const body = { paymentRef: newPayment() };
    const first = await client.buyListing(one.listingId, body);
    for (const again of [
      await client.buyProduct(one.productId, body),
      await client.buyListing(other.listingId, body),
      await client.buyProduct(other.productId, body),
    ]) {
      expect({ status: again.status, body: again.body }).toEqual({
        status: 200,
        body: { ...first.body, alreadyConfirmed: true },
      });
    }
    expect(
      await readAcquisitions(
        servers.db,
        other.vouchers.map(({ id }) => id),
      ),
    ).toEqual([]);
  });

  it("the same paymentRef buys different vouchers for other users and organizations", async () => {
    const [one, other] = [await makeSupply(2), await makeSupply(1)];
    const client = await as();
    const body = { paymentRef: newPayment() };
    const replies = [
      await client.buyListing(one.listingId, body),
      await client.buyListing(other.listingId, body),
      await (await as()).buyProduct(one.productId, body),
    ];
    expect(replies.map(outcome)).toEqual(["200", "200", "200"]);
    const ids = replies.map((reply) => reply.body.voucher.id);
    expect(ids).toEqual([one.vouchers[0], other.vouchers[0], one.vouchers[1]].map((voucher) => voucher?.id));
    // An unknown listing or product belongs to no organization, so the used payment reference has no effect.
    await expectRefused(404, "listing_not_found", () => client.buyListing("lst_unknown", body));
    await expectRefused(404, "product_not_found", () => client.buyProduct("prd_unknown", body));
  });

  it("a refused buy's paymentRef can be used again, and another one or a claim gets another voucher", async () => {
    const [empty, full] = [await makeSupply(1, { windows: {} }), await makeSupply(3)];
    const client = await as();
    const body = { paymentRef: newPayment() };
    expect(outcome(await client.buyListing(empty.listingId, body))).toBe("409 window_closed");
    const replies = [
      await client.buyListing(full.listingId, body),
      await client.buyProduct(full.productId),
      await client.claimProduct(full.productId),
    ];
    expect(new Set(replies.map((reply) => reply.body.voucher.id)).size).toBe(3);
    expect(replies.map((reply) => reply.body.alreadyConfirmed)).toEqual([false, false, false]);
  });
});

describe("a claim", () => {
  it("a user can claim a product only once, over all its batches, routes and links", async () => {
    const supply = await makeSupply(2);
    await offerBatch(servers.db, supply, 2, { validUntil: inSeconds(3_600) });
    const second = await makeReferral(servers.db, supply);
    const sister = { ...supply, productId: await makeSister(supply) };
    await offerBatch(servers.db, sister, 2);
    for (const [take, ...others] of [
      [(c: MarketClient) => c.claimProduct(supply.productId), (c: MarketClient) => c.claimByLink(supply.linkCode)],
      [
        (c: MarketClient) => c.claimByLink(supply.linkCode),
        (c: MarketClient) => c.claimProduct(supply.productId),
        (c: MarketClient) => c.claimByLink(second.code),
      ],
    ] as const) {
      const client = await as();
      const first = await take(client);
      expect(first).toMatchObject({ status: 200, body: { alreadyConfirmed: false } });
      for (const again of others) expect((await again(client)).body).toEqual({ ...first.body, alreadyConfirmed: true });
      expect(await client.claimProduct(sister.productId)).toMatchObject({ body: { alreadyConfirmed: false } });
    }
  });

  it.each(CLAIMS)("a claim needs no request body and ignores one: $name", async ({ take }) => {
    const supply = await makeSupply(3);
    for (const body of [undefined, {}, { paymentRef: "ignored", voucher: 1 }]) {
      expect(outcome(await take(await as(), supply, body))).toBe("200");
    }
  });
});

describe("a product's batches", () => {
  it("a claim or buy gets a voucher of the earliest expiring batch that is open to the caller", async () => {
    const partner = await makePartner(servers.db);
    const offer = (count: number, hours: number, audience: "OpenToAll" | "ReferrerOnly" = "OpenToAll") =>
      offerBatch(servers.db, partner, count, { audience, validUntil: inSeconds(hours * 3_600) });
    const late = await offer(4, 30);
    const soon = await offer(2, 20);
    const sooner = await offer(3, 10, "ReferrerOnly");
    const { code } = await makeReferral(servers.db, partner);
    const referrer = newUser();
    await makeContract(servers.db, partner.brandId, referrer);
    const batchOf = (reply: Reply) =>
      Object.entries({ late, soon, sooner }).find(([, { vouchers }]) =>
        vouchers.some(({ id }) => id === reply.body.voucher.id),
      )?.[0];
    expect(batchOf(await (await as()).buyProduct(partner.productId))).toBe("soon");
    expect(batchOf(await (await as()).claimByLink(code))).toBe("sooner");
    expect(batchOf(await (await as(referrer)).buyProduct(partner.productId))).toBe("sooner");
    expect(batchOf(await (await as(referrer)).claimProduct(partner.productId))).toBe("sooner");
    expect(batchOf(await (await as(referrer)).buyListing(late.listingId))).toBe("late");
    // The batch that expires first is sold out, so the call takes from the next batch.
    expect(batchOf(await (await as(referrer)).buyProduct(partner.productId))).toBe("soon");
    expect(batchOf(await (await as()).claimProduct(partner.productId))).toBe("late");
  });

  it("a claim or buy answers sold_out, not an audience error, when its open batch is sold out", async () => {
    const partner = await makePartner(servers.db);
    await offerBatch(servers.db, partner, 1, { audience: "ReferrerOnly" });
    const open = await offerBatch(servers.db, partner, 1);
    expect(outcome(await (await as()).buyProduct(partner.productId))).toBe("200");
    for (const reply of [
      await (await as()).buyProduct(partner.productId),
      await (await as()).claimProduct(partner.productId),
      await (await as()).buyListing(open.listingId),
    ]) {
      expect(outcome(reply)).toBe("409 sold_out");
    }
  });
});

it("a referrer's link works only while the contract is Active, and then lets everyone claim", async () => {
  const offer = await makeOffer(servers.db, 2, { audience: "ReferrerOnly" });
  const client = await as();
  for (const [status, endsAt] of [
    ["Offered", null],
    ["Declined", null],
    ["Ended", null],
    ["Active", inSeconds(-1)],
  ] as const) {
    const { code } = await makeReferral(servers.db, offer, status, endsAt);
    await expectRefused(404, "link_not_found", () => client.claimByLink(code));
  }
  const { code, referrerId } = await makeReferral(servers.db, offer, "Active", inSeconds(600));
  expect(outcome(await client.claimByLink(`${code}x`))).toBe("404 link_not_found");
  expect(outcome(await client.claimByLink(code))).toBe("200");
  expect(outcome(await (await as(referrerId)).claimByLink(code))).toBe("200");
});

it("a claim succeeds even if another release stored the voucher's code in another form", async () => {
  const { vouchers, productId } = await makeOffer(servers.db, 1);
  const setKey = (key: string) =>
    bypassTriggers(servers.db, "UPDATE vouchers SET code_key = $2 WHERE id = $1", [vouchers[0]?.id, key]);
  await setKey("A.B-C");
  const client = await as();
  const voucher = { id: vouchers[0]?.id, code: vouchers[0]?.code };
  for (const alreadyConfirmed of [false, true]) {
    expect(await client.claimProduct(productId)).toMatchObject({ status: 200, body: { voucher, alreadyConfirmed } });
  }
  // The invariants require this event.
  await setKey(vouchers[0]?.code.replaceAll("-", "") ?? "");
});

type Supply = TestPartner & Offered & { linkCode: string; contractId: string };

async function makeSupply(count: number, options: Parameters<typeof makeOffer>[2] = {}): Promise<Supply> {
  const offer = await makeOffer(servers.db, count, options);
  const { code, contractId } = await makeReferral(servers.db, offer);
  return { ...offer, linkCode: code, contractId };
}

/** Makes another product of the brand. Returns the product's id. */
async function makeSister({ brandId }: TestPartner): Promise<string> {
  const id = `prd_sister_${newUser()}`;
  await servers.db.query(
    `INSERT INTO products (id, brand_id, key, name, type, retail_price_usd, price_usd)
     VALUES ($1, $2, 'sister', 'Sister', 'Service', 1, 1)`,
    [id, brandId],
  );
  return id;
}

/** Dumps all rows once every event is sealed, because on a busy machine an acquisition answers before its seal. */
async function dumpSealed() {
  const { rows } = await servers.db.query(
    `SELECT DISTINCT voucher_id AS id FROM voucher_events WHERE seal_status = 'Pending'
        AND voucher_id NOT IN (SELECT voucher_id FROM broken_chains WHERE whole_at IS NULL)`,
  );
  for (const { id } of rows) await sealVoucher({ pool: servers.db }, id);
  return dumpRows(servers.db);
}

/** Expects a refusal in the common form, and that the call wrote nothing. */
async function expectRefused(status: number, code: string, call: () => Promise<Reply>): Promise<void> {
  const before = await dumpSealed();
  const reply = await call();
  expect({ status: reply.status, body: reply.body }).toEqual({
    status,
    body: { error: expect.stringMatching(/^\S.*\.$/), code, requestId: expect.any(String) },
  });
  expect(await dumpRows(servers.db)).toEqual(before);
}
