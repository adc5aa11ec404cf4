import { describe, expect, it } from "vitest";
import { rotateKey } from "../../../src/acts/key/rotate.ts";
import { ROW_EVENTS_MAX } from "../../../src/core/chain/db/outbox.ts";
import { recordExpiries } from "../../../src/core/chain/record-expiries.ts";
import { hashSecret, makeApiKey } from "../../../src/core/keys/api-keys.ts";
import { newId } from "../../../src/core/voucher/ids.ts";
import { sweep } from "../../../src/open/open-sweep.ts";
import { pooledRandomBytes } from "../../../src/platform/random.ts";
import { follow, OPERATIONS, type Operation } from "../../support/api-description.ts";
import { type PartnerClient, partnerClient, send } from "../../support/client.ts";
import {
  inSeconds,
  makeContract,
  makeMember,
  makeReferral,
  newUser,
  type Offered,
  OPEN,
  offerBatch,
  outcome,
  signedIn,
} from "../../support/marketplace.ts";
import { sealVoucher } from "../../support/seal-voucher.ts";
import {
  issueVoucher,
  issueVouchers,
  makeKey,
  makePartner,
  provisioning,
  type TestPartner,
} from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";
import { voidVoucher } from "../../support/void-voucher.ts";

const service = useService({ users: true });
const { servers, api, worker, issuer, partner: live, till: liveTill } = service;

const SECONDS_400_DAYS = 34_560_000;

it("a sandbox's key begins with pvt_ and a live organization's with pvk_, even after rotation", async () => {
  const sandbox = await makeSandbox();
  expect(sandbox.key).toMatch(/^pvt_/);
  const rotated = await rotateKey.run(provisioning(servers.db), sandbox.keyId, { grace: 0 });
  expect(rotated).toMatchObject({ key: expect.stringMatching(/^pvt_/), sandbox: true });
  const { code } = await issueVoucher(servers.db, sandbox);
  expect((await partnerClient(api.url, rotated.key).lookUp(code)).status).toBe(200);
  const ofLive = await makeKey(servers.db, live.organizationId);
  expect(ofLive).toEqual({ id: ofLive.id, key: expect.stringMatching(/^pvk_/) });
});

it.each([
  ["a sandbox key of a live organization", false, true],
  ["a live key of a sandbox", true, false],
  ["a sandbox key without an organization", null, true],
])("a key with the wrong prefix for its organization is refused as unknown: %s", async (_what, isSandbox, prefix) => {
  const partner = isSandbox === null ? null : await makePartner(servers.db, { sandbox: isSandbox });
  const { id } = await makeKey(servers.db, partner?.organizationId ?? null);
  const forged = makeApiKey(pooledRandomBytes, prefix);
  await servers.db.query("UPDATE api_key_secrets SET secret_hash = $2 WHERE key_id = $1", [
    id,
    Buffer.from(hashSecret(forged), "hex"),
  ]);
  expect(outcome(await partnerClient(api.url, forged).lookUp("7Q4K-9MZX-2HTB-W8RC"))).toBe("401 unknown_key");
});

it("the database refuses to make a live organization a sandbox, or the reverse", async () => {
  const { organizationId } = await makeSandbox();
  for (const id of [organizationId, live.organizationId]) {
    await expect(
      servers.db.query("UPDATE organizations SET sandbox = NOT sandbox WHERE id = $1", [id]),
    ).rejects.toMatchObject({ code: "23001" });
  }
});

it('"sandbox": true is in every response about a sandbox\'s voucher, and in none about a live one', async () => {
  const sandbox = await makeSandbox();
  for (const [till, partner, mark] of [
    [sandbox.till, sandbox, { sandbox: true }],
    [liveTill, live, {}],
  ] as const) {
    const { id, code } = await issueVoucher(servers.db, partner);
    const reserved = await till.reserve(code);
    const order = { code, externalRef: `order-${id}` };
    const replies = [
      reserved,
      await till.lookUp(code),
      await till.release(reserved.body.ticket),
      await till.release(reserved.body.ticket),
      await till.redeem(order),
      await till.redeem(order),
      await till.redemption(order.externalRef),
      await till.redemptions(),
      await till.events(code),
      await send("GET", `${api.url}/integrity/events/VoucherInstance/${id}`),
    ];
    expect(replies.map(({ status }) => status)).toEqual(Array(replies.length).fill(200));
    for (const { body } of replies) expect("sandbox" in body ? { sandbox: body.sandbox } : {}).toEqual(mark);
    const page = await fetch(`${api.url}/integrity/events/VoucherInstance/${id}`, { headers: { accept: "text/html" } });
    expect((await page.text()).includes("This is a test voucher. It has no value.")).toBe("sandbox" in mark);
  }
});

it('"sandbox": true is in the sealed payload of each event type of a sandbox, and of no live one', async () => {
  const sandbox = await makeSandbox();
  for (const [till, partner, mark] of [
    [sandbox.till, sandbox, true],
    [liveTill, live, undefined],
  ] as const) {
    const { organizationId, productId } = partner;
    const [redeemed, voided] = await issueVouchers(servers.db, partner, 2);
    await till.redeem({ code: redeemed?.code, externalRef: newUser() });
    await voidVoucher(provisioning(servers.db), organizationId, voided?.code ?? "", null);
    await sealVoucher({ pool: servers.db }, voided?.id ?? "");
    const { listingId } = await offerBatch(servers.db, partner, 2);
    const owner = newUser();
    await makeMember(servers.db, { organizationId, userId: owner, role: "owner" });
    const client = await signedIn(api.url, issuer, owner);
    await Promise.all([client.claimProduct(productId), client.buyListing(listingId)]);
    await issueVoucher(servers.db, partner, { validUntil: inSeconds(-1) });
    await recordExpiries(worker.ctx, performance.now() + 2_000);
    const sealed = await until(async () => {
      const { rows } = await servers.db.query<{ payload: string | null }>(
        "SELECT payload FROM voucher_events WHERE voucher_id IN (SELECT id FROM vouchers WHERE organization_id = $1)",
        [organizationId],
      );
      return rows.every(({ payload }) => payload !== null) ? rows.map(({ payload }) => payload as string) : null;
    });
    expect(new Set(sealed.map((payload) => JSON.parse(payload).code)).size).toBe(6);
    for (const payload of sealed) {
      expect(JSON.parse(payload).data.sandbox).toBe(mark);
      if (!mark) expect(payload).not.toContain("sandbox");
    }
  }
});

it('the API description has "sandbox": true in every partner response except of POST /sandbox/advance', () => {
  // A receipt is plain text.
  const isJson = ({ responses }: Operation) => "application/json" in (responses["200"]?.content ?? {});
  // Responses to issuers lack the field `sandbox`, because an issuer's programs know whose keys they use.
  const ofPartners = OPERATIONS.filter(({ path }) => !path.startsWith("/issuer/"));
  const described = ofPartners
    .filter(({ security }) => security.some((scheme) => "apiKey" in scheme))
    .filter(isJson)
    .map((operation) => {
      const schema = JSON.stringify(operation.responses["200"]?.content["application/json"]?.schema, (_key, value) =>
        follow(value),
      );
      return [operation.operationId, schema.includes('"sandbox":{')];
    });
  expect(described.length).toBeGreaterThan(5);
  expect(described.filter(([, marked]) => !marked)).toEqual([["advanceSandbox", false]]);
});

describe("a sandbox in the marketplace", () => {
  async function offerFromSandbox(options?: Parameters<typeof offerBatch>[3]) {
    const sandbox = await makeSandbox();
    return { ...sandbox, ...(await offerBatch(servers.db, sandbox, 3, options)) };
  }

  const listed = async (client: Awaited<ReturnType<typeof signedIn>>, { listingId }: Offered) => {
    const { body } = await client.listings("?limit=100");
    return (body.listings as { id: string; sandbox?: true }[]).find(({ id }) => id === listingId);
  };

  it("the marketplace hides a sandbox's listings from other users, except through a referrer's link", async () => {
    const offer = await offerFromSandbox();
    const other = await signedIn(api.url, issuer);
    const ofLive = await offerBatch(servers.db, live, 1);
    expect(await listed(other, ofLive)).toMatchObject({ id: ofLive.listingId });
    expect(await listed(other, ofLive)).not.toHaveProperty("sandbox");
    expect((await other.claimProduct(live.productId)).body).not.toHaveProperty("sandbox");
    expect(await listed(other, offer)).toBeUndefined();
    expect(outcome(await other.listing(offer.listingId))).toBe("404 listing_not_found");
    expect(outcome(await other.buyListing(offer.listingId))).toBe("404 listing_not_found");
    expect(outcome(await other.buyProduct(offer.productId))).toBe("404 product_not_found");
    expect(outcome(await other.claimProduct(offer.productId))).toBe("404 product_not_found");
    const anonymous = await send("GET", `${api.url}/marketplace/listings/${offer.listingId}`);
    expect(outcome(anonymous)).toBe("404 listing_not_found");
    const { code } = await makeReferral(servers.db, offer);
    expect((await other.claimByLink(code)).body).toMatchObject({ alreadyConfirmed: false, sandbox: true });
  });

  it("the marketplace fills each page with visible listings, however many listings are hidden", async () => {
    const before = await send("GET", `${api.url}/marketplace/listings?limit=100`);
    const last = before.body.listings.at(-1)?.id ?? "";
    for (let i = 0; i < 3; i++) await offerFromSandbox();
    const shown = await offerBatch(servers.db, await makePartner(servers.db), 1);
    const page = await send("GET", `${api.url}/marketplace/listings?limit=1&cursor=${last}`);
    expect(page.body.listings.map(({ id }: { id: string }) => id)).toEqual([shown.listingId]);
  });

  it("the marketplace shows a sandbox's listings, marked, to its members and referrers, who can buy", async () => {
    const offer = await offerFromSandbox();
    const [employee, referrer] = [newUser(), newUser()];
    await makeMember(servers.db, { organizationId: offer.organizationId, userId: employee, role: "employee" });
    await makeContract(servers.db, offer.brandId, referrer, "Active", inSeconds(60));
    for (const user of [employee, referrer]) {
      const client = await signedIn(api.url, issuer, user);
      expect(await listed(client, offer)).toMatchObject({ canBuy: true, sandbox: true });
      const bought = await client.buyListing(offer.listingId, { paymentRef: `pay-${user}` });
      expect(bought.body).toMatchObject({ alreadyConfirmed: false, sandbox: true });
      const again = await client.buyListing(offer.listingId, { paymentRef: `pay-${user}` });
      expect(again.body).toMatchObject({ alreadyConfirmed: true, sandbox: true });
    }
    // The contract has ended, but the sweeper has not recorded it yet.
    await offer.till.advance(60);
    const late = await signedIn(api.url, issuer, referrer);
    expect(outcome(await late.listing(offer.listingId))).toBe("404 listing_not_found");
  });
});

it("POST /sandbox/advance ends a reservation with its ticket and lease, and frees the voucher", async () => {
  const sandbox = await makeSandbox();
  const { till } = sandbox;
  const rival = partnerClient(api.url, (await makeKey(servers.db, sandbox.organizationId)).key);
  const { id, code } = await issueVoucher(servers.db, sandbox);
  const { ticket, expiresAt } = (await till.reserve(code)).body;
  expect((await till.advance(600)).body).toEqual({ advancedSeconds: 600, reservationsEnded: 0, vouchersExpired: 0 });
  const held = (await till.lookUp(code)).body.reservation;
  expect(Date.parse(expiresAt) - Date.parse(held.expiresAt)).toBe(600_000);
  expect((await till.advance(301)).body).toEqual({ advancedSeconds: 301, reservationsEnded: 1, vouchersExpired: 0 });
  expect(await servers.redis.exists(servers.leaseKey(id))).toBe(0);
  expect((await till.lookUp(code)).body.reservation).toBeNull();
  expect(outcome(await till.redeem({ ticket, externalRef: `late-${id}` }))).toBe("409 reservation_ended");
  expect((await rival.reserve(code)).status).toBe(200);
});

it("POST /sandbox/advance expires vouchers, seals their earlier events first, and writes one audit entry", async () => {
  const sandbox = await makeSandbox();
  const vouchers = await issueVouchers(servers.db, sandbox, 3, { validUntil: inSeconds(86_400) });
  const [used, code] = [vouchers[0]?.code ?? "", vouchers[1]?.code ?? ""];
  const order = { code: used, externalRef: `before-${used}` };
  const redeemed = await sandbox.till.redeem(order);
  const past = (await sandbox.till.events(used)).body;
  const { validUntil } = (await sandbox.till.lookUp(code)).body.voucher;
  const advanced = await sandbox.till.advance(86_401);
  expect(advanced.body).toEqual({ advancedSeconds: 86_401, reservationsEnded: 0, vouchersExpired: 2 });
  const { voucher } = (await sandbox.till.lookUp(code)).body;
  expect(voucher.status).toBe("Expired");
  expect(Date.parse(validUntil) - Date.parse(voucher.validUntil)).toBe(86_401_000);
  expect((await sandbox.till.redeem(order)).body).toEqual({ ...redeemed.body, alreadyConfirmed: true });
  expect((await sandbox.till.events(used)).body).toEqual(past);
  expect(outcome(await sandbox.till.redeem({ code, externalRef: `after-${code}` }))).toBe("409 voucher_expired");
  const { events } = (await sandbox.till.events(code)).body;
  expect(events.at(-1)).toMatchObject({ eventType: "voucher.instance.expired", sealStatus: "Sealed" });
  const { rows } = await servers.db.query(
    `SELECT command, arguments, entity_type, after
       FROM audit_entries WHERE entity_id = $1 AND command = 'sandbox advance'`,
    [sandbox.organizationId],
  );
  const entry = { command: "sandbox advance", arguments: { seconds: 86_401, key: sandbox.keyId } };
  expect(rows).toEqual([{ ...entry, entity_type: "Organization", after: advanced.body }]);
});

it("POST /sandbox/advance moves the opening and the end of a batch's claim or buy window", async () => {
  const sandbox = await makeSandbox();
  const user = newUser();
  await makeMember(servers.db, { organizationId: sandbox.organizationId, userId: user, role: "owner" });
  const client = await signedIn(api.url, issuer, user);
  const hour = { opensAt: inSeconds(3_600), closesAt: inSeconds(7_200) };
  await offerBatch(servers.db, sandbox, 1, { windows: { ...OPEN, claim: hour } });
  const claim = async () => outcome(await client.claimProduct(sandbox.productId));
  expect(await claim()).toBe("409 window_closed");
  await sandbox.till.advance(3_601);
  expect(await claim()).toBe("200");
  const other = newUser();
  await makeMember(servers.db, { organizationId: sandbox.organizationId, userId: other, role: "owner" });
  await sandbox.till.advance(3_600);
  expect(outcome(await (await signedIn(api.url, issuer, other)).claimProduct(sandbox.productId))).toBe(
    "409 window_closed",
  );
  const { rows } = await servers.db.query(
    "SELECT closes_at - opens_at AS length FROM batch_windows WHERE closes_at < now()",
  );
  expect(rows[0]?.length).toMatchObject({ hours: 1 });
});

it("POST /sandbox/advance changes no other organization, live or sandbox", async () => {
  const [sandbox, neighbour] = [await makeSandbox(), await makeSandbox()];
  const read = async () => {
    const views = [];
    for (const [till, code] of held) views.push((await till.lookUp(code)).body);
    return views;
  };
  const held = [
    [liveTill, (await issueVoucher(servers.db, live)).code],
    [neighbour.till, (await issueVoucher(servers.db, neighbour)).code],
  ] as const;
  for (const [till, code] of held) await till.reserve(code);
  const before = await read();
  await sandbox.till.advance(SECONDS_400_DAYS);
  await sweep(worker.ctx);
  expect(await read()).toEqual(before);
});

it("POST /sandbox/advance accepts only a whole number of seconds up to 400 days", async () => {
  const sandbox = await makeSandbox();
  const { code } = await issueVoucher(servers.db, sandbox);
  const before = (await sandbox.till.lookUp(code)).body;
  for (const seconds of [0, -1, 1.5, SECONDS_400_DAYS + 1, "900", null, undefined]) {
    const { status, body } = await sandbox.till.advance(seconds);
    const said = seconds === undefined ? "seconds is required" : "seconds must be a whole number from 1 to 34560000";
    expect({ status, error: body.error }).toEqual({ status: 400, error: expect.stringContaining(said) });
  }
  expect((await sandbox.till.lookUp(code)).body).toEqual(before);
});

it("POST /sandbox/advance refuses a live organization's key with 403 sandbox_only, with any body", async () => {
  const { code } = await issueVoucher(servers.db, live);
  await liveTill.reserve(code);
  const before = (await liveTill.lookUp(code)).body;
  for (const seconds of [900, "nonsense"]) expect(outcome(await liveTill.advance(seconds))).toBe("403 sandbox_only");
  expect((await liveTill.lookUp(code)).body).toEqual(before);
});

it("POST /sandbox/advance can end more reservations than one webhook_outbox row can hold", async () => {
  const sandbox = await makeSandbox();
  await servers.db.query(
    "INSERT INTO webhook_endpoints (id, organization_id, place, url) VALUES ($1, $2, 1, 'https://partner.test')",
    [newId("whk"), sandbox.organizationId],
  );
  await reserveMany(sandbox, ROW_EVENTS_MAX + 1);
  const { status, body } = await sandbox.till.advance(900);
  expect({ status, ended: body.reservationsEnded }).toEqual({ status: 200, ended: ROW_EVENTS_MAX + 1 });
  const { rows } = await servers.db.query(
    "SELECT sum(cardinality(tickets))::int AS announced FROM webhook_outbox WHERE organization_id = $1",
    [sandbox.organizationId],
  );
  expect(rows).toEqual([{ announced: ROW_EVENTS_MAX + 1 }]);
});

it("POST /sandbox/advance refuses more than 10 000 live reservations, and changes nothing", async () => {
  const sandbox = await makeSandbox();
  await reserveMany(sandbox, 10_001);
  const { status, body } = await sandbox.till.advance(900);
  expect({ status, error: body.error }).toEqual({
    status: 400,
    error: "This sandbox has more than 10,000 live reservations. Release some of them first.",
  });
  const { rows } = await servers.db.query(
    `SELECT count(*)::int AS live FROM reservations
      WHERE organization_id = $1 AND state = 'Live' AND expires_at > now()`,
    [sandbox.organizationId],
  );
  expect(rows).toEqual([{ live: 10_001 }]);
});

describe("the database's rules for sandboxes", () => {
  const advance = (organizationId: string, seconds: number | null) =>
    servers.db.query("SELECT * FROM advance_sandbox($1, $2, 'key_x', 'me', 'here')", [organizationId, seconds]);

  it("the database advances only a sandbox's clock, and only by a valid number of seconds", async () => {
    const { organizationId } = await makeSandbox();
    for (const [id, seconds] of [
      [live.organizationId, 900],
      [newId("org"), 900],
      [organizationId, 0],
      [organizationId, SECONDS_400_DAYS + 1],
      [organizationId, null],
    ] as const) {
      await expect(advance(id, seconds)).rejects.toMatchObject({ code: "23001" });
    }
  });

  it("the database lets only a sandbox change an open contract's end, and only to an earlier time", async () => {
    const sandbox = await makeSandbox();
    const ends = inSeconds(3_600);
    const [ofSandbox, ofLive] = [
      await makeContract(servers.db, sandbox.brandId, newUser(), "Active", ends),
      await makeContract(servers.db, live.brandId, newUser(), "Active", ends),
    ];
    const change = (id: string, how: string) =>
      servers.db.query(`UPDATE referrer_contracts SET ${how} WHERE id = $1`, [id]);
    const refused = { code: "23001" };
    await expect(change(ofLive, "ends_at = ends_at - interval '1 hour'")).rejects.toMatchObject(refused);
    await expect(change(ofSandbox, "ends_at = ends_at + interval '1 hour'")).rejects.toMatchObject(refused);
    await expect(change(ofSandbox, "ends_at = ends_at - interval '1 s', user_id = 'x'")).rejects.toMatchObject(refused);
    await expect(change(ofSandbox, "ends_at = ends_at - interval '1 hour'")).resolves.toMatchObject({ rowCount: 1 });
  });
});

/** Creates a sandbox for one test, so that no other test moves its times. */
async function makeSandbox(): Promise<TestPartner & { keyId: string; key: string; till: PartnerClient }> {
  const partner = await makePartner(servers.db, { sandbox: true });
  const { id, key } = await makeKey(servers.db, partner.organizationId);
  return { ...partner, keyId: id, key, till: partnerClient(api.url, key) };
}

async function reserveMany(partner: TestPartner, count: number): Promise<void> {
  await issueVouchers(servers.db, partner, count);
  await servers.db.query(
    `WITH v AS MATERIALIZED (SELECT id, organization_id FROM vouchers WHERE organization_id = $1)
       INSERT INTO reservations
         (started_at, expires_at, ticket, voucher_id, organization_id, key_id, state, token_secret_id)
       SELECT now(), now() + interval '15 minutes', 'rsv_many_' || id, id, organization_id, 'key_x', 'Live', 'none'
         FROM v`,
    [partner.organizationId],
  );
}
