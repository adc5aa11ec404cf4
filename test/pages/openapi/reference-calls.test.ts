import { beforeAll, describe, expect, it, vi } from "vitest";
import { erasePerson } from "../../../src/acts/erase-person.ts";
import { suspendBatch } from "../../../src/acts/suspend-batch.ts";
import { lockReferencesToEnd } from "../../../src/core/redeem/db/redemptions.ts";
import { newId } from "../../../src/core/voucher/ids.ts";
import { ENDPOINTS } from "../../../src/open/endpoints.ts";
import { EXAMPLE } from "../../../src/platform/api/example.ts";
import { translateInto } from "../../../src/platform/api/sentences.ts";
import { BatcherFull } from "../../../src/platform/batching/batcher.ts";
import { inTransaction } from "../../../src/platform/db/transaction.ts";
import { ALL_ERRORS } from "../../support/all-errors.ts";
import { mediaOf, OPERATIONS, type Operation } from "../../support/api-description.ts";
import { partnerClient, type Reply, send } from "../../support/client.ts";
import { beginTlog, makeTlogFiles, openSequencer } from "../../support/log-setup.ts";
import { inSeconds, makeOffer, makeReferral, newPayment, newUser } from "../../support/marketplace.ts";
import { whileLocked } from "../../support/outside-transaction.ts";
import { startApiUnready, startWorkers, type TestApi } from "../../support/service.ts";
import {
  issueTestBatch,
  issueVoucher,
  makeKey,
  makePartner,
  provisioning,
  type TestPartner,
} from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";
import { signUser } from "../../support/user-tokens.ts";
import { voidVoucher } from "../../support/void-voucher.ts";

// Calls each operation of the API reference with valid input, and causes each error that the reference describes.
// Operations share the handlers that check access and body, so the tests cause those errors once for each kind of
// access. `send` checks every response against the reference, here and in every other test.

const WEBHOOK_SECRET = "a root secret of the tests of the reference";
/** An API that waits only a second for a worker, allows each key one miss a minute, and has no webhooks. */
const HASTY = { REDEEM_WAIT_MS: "1000", MISS_LIMIT_PER_MINUTE: "1" };
/** An API that allows each caller one request a second. */
const STRICT = { WEBHOOK_SECRET, RATE_LIMIT_RPS: "1" };
const service = useService({ apis: [{ WEBHOOK_SECRET }, HASTY, STRICT], users: true, env: { ISSUER_API: "true" } });
const { servers, partner, worker, issuer, issue, till: shop, rival } = service;
const [api, hasty, strict] = service.apis;
/** An API without a database. */
let stranded: TestApi;
let sequencer: ReturnType<typeof openSequencer>;
let sandbox: TestPartner;
let keys: Record<"capped" | "shop" | "reader" | "redeemer" | "unbound" | "elsewhere" | "sandbox" | "issuer", string>;

beforeAll(async () => {
  const env = { WEBHOOK_SECRET, ISSUER_API: "true", AUTH_JWKS_URL: String(api.ctx.config.users.jwksUrl) };
  stranded = await startApiUnready(servers, { ...env, DATABASE_URL: "postgresql://unknown@127.0.0.1:1/nothing" });
  const files = makeTlogFiles();
  servers.onClose(async () => files.remove());
  await beginTlog(servers.db, files);
  sequencer = openSequencer(servers, files);
  sandbox = await makePartner(servers.db, { sandbox: true });
  const make = async (organizationId: string | null, options?: Parameters<typeof makeKey>[2]) =>
    (await makeKey(servers.db, organizationId, options)).key;
  keys = {
    shop: service.keys.till.key,
    capped: await make(partner.organizationId, { caps: { maxPerDay: null, maxAmountPerDayUsd: 0 } }),
    reader: await make(partner.organizationId, { scopes: ["voucher.read"] }),
    redeemer: await make(partner.organizationId, { scopes: ["voucher.redeem"] }),
    unbound: await make(null),
    elsewhere: await make(partner.organizationId, { allowIps: ["192.0.2.1"] }),
    sandbox: await make(sandbox.organizationId),
    issuer: await make(partner.organizationId, { scopes: ["voucher.issue"] }),
  };
});

const asUser = async () => ({ authorization: `Bearer ${await signUser(issuer, newUser())}` });
let orders = 0;
const newOrder = () => `order-${++orders}`;

type Offer = Awaited<ReturnType<typeof makeOffer>>;

type Provoke = (operation: Operation, valid: Call) => Promise<Reply>;

// One test for all operations, because each call takes as long as the service waits for a locked row.
it("every operation that changes a voucher answers 503 voucher_busy while the voucher stays locked", async () => {
  const moving = OPERATIONS.filter((operation) =>
    describedRefusals(operation).some(([, code]) => code === "voucher_busy"),
  );
  const calls: Awaited<ReturnType<typeof makeVoucherCall>>[] = [];
  for (const operation of moving) calls.push(await makeVoucherCall(operation));
  const answers = await whileLocked(
    servers.db,
    calls.map(({ voucherId }) => voucherId),
    () => Promise.all(calls.map(({ operation, call }) => perform(operation, call))),
  );
  expect(answers.map(({ status, body }, index) => [moving[index]?.operationId, status, body.code])).toEqual(
    moving.map(({ operationId }) => [operationId, 503, "voucher_busy"]),
  );
});

// One test for all operations, because some calls wait for the database's clock.
it("every operation that needs the database answers 503 unavailable while the database is unreachable", async () => {
  const needing = OPERATIONS.filter((operation) =>
    describedRefusals(operation).some(([, code]) => code === "unavailable"),
  );
  const calls = new Map<Operation, Call>();
  for (const operation of needing) calls.set(operation, await makeValid(operation.operationId));
  const refuse = async ([operation, call]: [Operation, Call]) => {
    const { status, body } = await perform(operation, call, stranded.url);
    expect(body.error).not.toMatch(/ECONN|127\.0\.0\.1|unknown@/);
    return [operation.operationId, status, body.code];
  };
  expect(await Promise.all(Array.from(calls, refuse))).toEqual(
    needing.map(({ operationId }) => [operationId, 503, "unavailable"]),
  );
});

const withHeaders =
  (headers: () => Record<string, string>): Provoke =>
  (operation, valid) =>
    perform(operation, { ...valid, headers: { ...valid.headers, ...headers() } });

const withBody =
  (body: () => Promise<Record<string, unknown>> | Record<string, unknown>): Provoke =>
  async (operation, valid) =>
    perform(operation, { ...valid, body: { ...valid.body, ...(await body()) } });

const withParameter =
  (name: string, value: string): Provoke =>
  (operation, valid) =>
    perform(operation, { ...valid, parameters: { ...valid.parameters, [name]: value } });

/** Claims or buys from a new offer with these options. */
const fromOffer =
  (options: Parameters<typeof makeOffer>[2]): Provoke =>
  async (operation) =>
    perform(operation, await acquireCall(operation.operationId, await makeOffer(servers.db, 1, options)));

/** Replaces the voucher's code in a call's body or path. */
const ofVoucher =
  (code: () => Promise<string>): Provoke =>
  async (operation, valid) => {
    const named = await code();
    if (operation.method === "get") return withParameter("codeOrTicket", named)(operation, valid);
    return withBody(() => ({ code: named }))(operation, valid);
  };

/** Reads of a voucher that was redeemed, after the given change. */
const ofRedeemed =
  (prepare: (redeemed: { externalRef: string }) => Promise<void>): Provoke =>
  async (operation, valid) => {
    const { id, code, externalRef } = await redeemed();
    await prepare({ externalRef });
    const fresh = { externalRef, codeOrTicket: code, entityId: id, sequence: "2" };
    if (valid.query !== undefined) return perform(operation, { ...valid, query: `?externalRef=${externalRef}` });
    const names = Object.keys(valid.parameters ?? {});
    const parameters = Object.fromEntries(Object.entries(fresh).filter(([name]) => names.includes(name)));
    return perform(operation, { ...valid, parameters: { ...valid.parameters, ...parameters } });
  };

/** The way to cause each error. */
const PROVOKE: Partial<Record<string, Provoke>> = {
  missing_key: withHeaders(() => ({ "x-api-key": "" })),
  unknown_key: withHeaders(() => ({ "x-api-key": "pvk_unheard-of" })),
  key_without_organization: withHeaders(() => ({ "x-api-key": keys.unbound })),
  address_not_allowed: withHeaders(() => ({ "x-api-key": keys.elsewhere })),
  missing_scope: (operation, valid) => {
    const other = operation["x-scopes"]?.includes("voucher.read") ? keys.redeemer : keys.reader;
    return withHeaders(() => ({ "x-api-key": other }))(operation, valid);
  },
  missing_token: withHeaders(() => ({ authorization: "Basic dXNlcjpzZWNyZXQ=" })),
  invalid_token: withHeaders(() => ({ authorization: "Bearer not.a.token" })),
  sandbox_only: withHeaders(() => ({ "x-api-key": keys.shop })),
  cap_reached: withHeaders(() => ({ "x-api-key": keys.capped })),
  invalid_json: (operation, valid) => perform(operation, { ...valid, body: "[]" as never }),
  invalid_request: (operation, valid) =>
    valid.parameters?.month !== undefined
      ? withParameter("month", "2026")(operation, valid)
      : operation.requestBody === undefined
        ? perform(operation, { ...valid, query: "?limit=0&externalRef=a&externalRef=b" })
        : withBody(() => ({ more: "\0" }))(operation, valid),
  body_too_large: withBody(() => ({ more: "x".repeat(1_100_000) })),
  unsupported_encoding: withHeaders(() => ({ "content-encoding": "compress" })),

  not_found: (operation, valid) => {
    if (valid.parameters !== undefined) return withParameter("id", "unheard-of")(operation, valid);
    if (operation.method === "get")
      return perform(operation, { ...valid, query: "?brand=unheard-of&product=unheard-of" });
    return ofVoucher(async () => "7Q4K-9MZX-2HTB-W8RC")(operation, valid);
  },
  already_exists: performTwice,
  wrong_status: performTwice,
  voucher_not_found: ofVoucher(async () => "7Q4K-9MZX-2HTB-W8RC"),
  not_logged_yet: ofRedeemed(async () => undefined),
  payload_erased: ofRedeemed(async ({ externalRef }) => {
    const { organizationId } = partner;
    await erasePerson(provisioning(servers.db), { by: "reference", organizationId, externalRef }, null);
    await sequencer.run();
  }),
  entity_not_found: withParameter("entityId", "vch_unheard-of"),
  redemption_not_found: (operation, valid) =>
    valid.query === undefined
      ? withParameter("externalRef", "unheard-of")(operation, valid)
      : perform(operation, { ...valid, query: "?externalRef=unheard-of" }),
  listing_not_found: withParameter("id", "lst_unheard-of"),
  product_not_found: withParameter("id", "prd_unheard-of"),
  link_not_found: withParameter("code", "unheard-of"),

  webhook_not_found: withParameter("id", "whk_unheard-of"),
  webhooks_off: (operation, valid) => perform(operation, valid, hasty.url),
  webhook_limit: async (operation, valid) => {
    const most = operation.operationId === "rotateWebhook" ? 10 : 19;
    for (let count = 1; count <= most; count++) expect((await perform(operation, valid)).status).toBe(200);
    return perform(operation, valid);
  },
  webhook_disabled: async (operation, valid) => {
    await servers.db.query(
      "UPDATE webhook_endpoints SET enabled = false, disabled_reason = 'operator', disabled_at = now() WHERE id = $1",
      [valid.parameters?.id],
    );
    return perform(operation, valid);
  },

  voucher_used: ofVoucher(async () => (await redeemed()).code),
  voucher_voided: ofVoucher(async () => {
    const { code } = await issue();
    await voidVoucher(provisioning(servers.db), partner.organizationId, code, null);
    return code;
  }),
  voucher_expired: ofVoucher(async () => (await issue({ validUntil: inSeconds(-1) })).code),
  voucher_suspended: async (operation, valid) => {
    const suspend = async (id: string) => {
      const { rows } = await servers.db.query("SELECT batch_id AS id FROM vouchers WHERE id = $1", [id]);
      await suspendBatch(provisioning(servers.db), rows[0].id, "stolen");
    };
    if (operation.tags.includes("Marketplace")) {
      const offer = await makeOffer(servers.db, 1);
      await suspend(offer.vouchers[0]?.id ?? "");
      return perform(operation, await acquireCall(operation.operationId, offer));
    }
    const { id, code } = await issue();
    await suspend(id);
    return ofVoucher(async () => code)(operation, valid);
  },
  reservation_ended: ofVoucher(async () => {
    const { ticket } = (await shop.reserve((await issue()).code)).body;
    await shop.release(ticket);
    return ticket;
  }),
  token_mismatch: withBody(() => ({ token: "not-the-token" })),
  voucher_reserved: ofVoucher(async () => {
    const { code } = await issue();
    await rival.reserve(code);
    return code;
  }),

  rate_limited: (operation, valid) =>
    until(async () => {
      const replies = await Promise.all(Array.from({ length: 10 }, () => perform(operation, valid, strict.url)));
      return replies.find(({ status }) => status === 429);
    }),
  too_many_misses: async (operation, valid) => {
    const scopes = ["voucher.read", "voucher.redeem", "voucher.issue"] as const;
    const { key } = await makeKey(servers.db, partner.organizationId, { scopes: [...scopes] });
    expect((await partnerClient(hasty.url, key).lookUp("7Q4K-9MZX-2HTB-W8RC")).status).toBe(404);
    return perform(operation, { ...valid, headers: { "x-api-key": key } }, hasty.url);
  },

  referrers_only: fromOffer({ audience: "ReferrerOnly" }),
  window_closed: fromOffer({ windows: {} }),
  sold_out: async (operation) => {
    const offer = await makeOffer(servers.db, 1);
    const [first, second] = [
      await acquireCall(operation.operationId, offer),
      await acquireCall(operation.operationId, offer),
    ];
    expect((await perform(operation, first)).status).toBe(200);
    return perform(operation, second);
  },

  redeem_unknown: async (operation, valid) => {
    const ref = { organizationId: partner.organizationId, externalRef: String(valid.body?.externalRef) };
    // Acquires the lock like another API process whose commit hangs.
    return inTransaction(api.ctx.pool, async (outside) => {
      await lockReferencesToEnd(outside, [ref]);
      return perform(operation, valid, hasty.url);
    });
  },
  redeem_timeout: async (operation, valid) => {
    await worker.close();
    try {
      return await perform(operation, valid, hasty.url);
    } finally {
      await startWorkers(servers);
      // Runs a job now, because a worker's first job may take longer than the short wait of `hasty`.
      await redeemed();
    }
  },
  // Makes every limit of waiting calls refuse. The tests of the batcher and of the bulkhead fill the real ones.
  overloaded: async (operation, valid) => {
    const { ctx } = api;
    for (const place of ["partnerCalls", "publicReads", "sandboxAdvances"] as const) {
      vi.spyOn(ctx, place).mockRejectedValue(new BatcherFull());
    }
    for (const place of [ctx.voucherReads, ctx.acquisitions, ctx.redemptionReads])
      vi.spyOn(place, "submit").mockRejectedValue(new BatcherFull());
    if (ctx.issuer !== null) vi.spyOn(ctx.issuer, "calls").mockRejectedValue(new BatcherFull());
    vi.spyOn(ctx.webhookTests, "hasRoom").mockReturnValue(false);
    return perform(operation, valid).finally(vi.restoreAllMocks);
  },
};

async function performTwice(operation: Operation, valid: Call): Promise<Reply> {
  await perform(operation, valid);
  return perform(operation, valid);
}

/** Refusals of a call that was valid, caused by repeating the call or by changing its data. */
const USES_UP = new Set<string>([
  "already_exists",
  "wrong_status",
  "webhook_limit",
  "webhook_disabled",
  "rate_limited",
  "redeem_timeout",
  "redeem_unknown",
]);

/** Refusals by the handlers that check access or a body. */
const BEFORE_HANDLER = new Set<string>([
  "unknown_key",
  "key_without_organization",
  "address_not_allowed",
  "missing_scope",
  "invalid_token",
  "rate_limited",
  "invalid_json",
  "body_too_large",
  "unsupported_encoding",
]);
/** Pairs of a kind of access and a refusal's code that have a test. */
const tested = new Set<string>();

/** Whether this operation is the first with this code among those that share the handlers of access and body. */
function isFirst({ operationId }: Operation, code: string): boolean {
  if (!BEFORE_HANDLER.has(code)) return true;
  const { tag, security, bodyMax } = ENDPOINTS.find((endpoint) => endpoint.operationId === operationId) ?? {};
  const kind = JSON.stringify([tag, security, bodyMax, code]);
  return !tested.has(kind) && tested.add(kind).size > 0;
}

/** Codes that some callers throw with their own message. */
const SENTENCE_VARIES = /^not_found|already_exists|wrong_status|invalid_[jr]|missing_scope|webhook_limit|overloaded/;

describe.each(
  OPERATIONS.map((operation) => [operation.operationId, operation] as const),
)("the operation %s", (operationId, operation) => {
  const codes = describedRefusals(operation).filter(
    ([, code]) => !["voucher_busy", "unavailable"].includes(code) && isFirst(operation, code),
  );

  /** One valid call that all refused calls start from, because a refusal does not use it up. */
  let shared: Promise<Call> | undefined;

  it(`${operationId} answers a valid call with 200`, async () => {
    expect((await perform(operation, await makeValid(operationId))).status).toBe(200);
  });

  it.each(codes)(`${operationId} answers %s %s, as the reference describes`, async (status, code) => {
    const provoke = PROVOKE[code];
    if (provoke === undefined) throw new Error(`there is no way to provoke ${code}`);
    if (!USES_UP.has(code)) shared ??= makeValid(operationId);
    const reply = await provoke(
      operation,
      await (USES_UP.has(code) ? makeValid(operationId) : (shared as Promise<Call>)),
    );
    expect({ status: reply.status, code: reply.body.code }).toEqual({ status: Number(status), code });
    if (!SENTENCE_VARIES.test(code) && !["voidVoucher", "resumeVoucher"].includes(operationId))
      expect(reply.body.error).toBe(ALL_ERRORS.get(code)?.sentence(translateInto("en")));
  });
});

function makeValid(operationId: string): Promise<Call> {
  const make = VALID[operationId];
  if (make === undefined) throw new Error(`there is no valid call of ${operationId}`);
  return make();
}

/** A request to an operation. */
interface Call {
  headers?: Record<string, string>;
  parameters?: Record<string, string>;
  query?: string;
  body?: Record<string, unknown>;
}

function perform(operation: Operation, { headers, parameters, query, body }: Call, url = api.url): Promise<Reply> {
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(parameters?.[name] ?? ""));
  return send(operation.method.toUpperCase(), `${url}${path}${query ?? ""}`, {
    ...(headers !== undefined && { headers }),
    ...(body !== undefined && { body }),
  });
}

/** A redeemed voucher. */
async function redeemed() {
  const [voucher, externalRef] = [await issue(), newOrder()];
  expect((await shop.redeem({ code: voucher.code, externalRef })).status).toBe(200);
  return { ...voucher, externalRef };
}

/** Prepares a call about a new organization's webhook endpoint, to whose address the service must not connect. */
async function makeWebhook() {
  const { organizationId } = await makePartner(servers.db);
  const { key } = await makeKey(servers.db, organizationId, { scopes: ["voucher.webhook"] });
  const id = newId("whk");
  await servers.db.query(
    "INSERT INTO webhook_endpoints (id, organization_id, place, url) VALUES ($1, $2, 1, 'https://127.0.0.1/')",
    [id, organizationId],
  );
  return { headers: { "x-api-key": key }, parameters: { id } };
}

/** Makes an offer's claim or purchase. */
async function acquireCall(operationId: string, offer: Offer): Promise<Call> {
  const headers = await asUser();
  const body = operationId.startsWith("buy") ? { paymentRef: newPayment() } : {};
  if (operationId === "buyListing") return { headers, parameters: { id: offer.listingId }, body };
  if (operationId === "claimByLink") {
    return { headers, parameters: { code: (await makeReferral(servers.db, offer)).code }, body };
  }
  return { headers, parameters: { id: offer.productId }, body };
}

/** Lists status and code of each refusal that an operation describes. */
function describedRefusals({ responses }: Operation): (readonly [status: string, code: string])[] {
  return Object.entries(responses)
    .filter(([status]) => Number(status) >= 400)
    .flatMap(([status, { content }]) =>
      Object.keys(mediaOf(content).examples ?? {}).map((code) => [status, code] as const),
    );
}

/** A call about one voucher. */
async function makeVoucherCall(operation: Operation) {
  if (operation.tags.includes("Marketplace")) {
    const offer = await makeOffer(servers.db, 1);
    const call = await acquireCall(operation.operationId, offer);
    return { operation, voucherId: offer.vouchers[0]?.id ?? "", call };
  }
  if (operation.tags.includes("Sandbox")) {
    const { id, code } = await issueVoucher(servers.db, sandbox);
    await partnerClient(api.url, keys.sandbox).reserve(code);
    return { operation, voucherId: id, call: (await VALID[operation.operationId]?.()) ?? {} };
  }
  const call = (await VALID[operation.operationId]?.()) ?? {};
  if (call.parameters?.id !== undefined) {
    const { rows } = await servers.db.query("SELECT id FROM vouchers WHERE batch_id = $1", [call.parameters.id]);
    return { operation, voucherId: rows[0].id, call };
  }
  const named = String(call.body?.code ?? call.body?.ticket);
  return { operation, voucherId: (await shop.lookUp(named)).body.voucher.id, call };
}

/** A successful call to each operation, each with its own data. */
const VALID: Record<string, () => Promise<Call>> = {
  reserveVoucher: async () => ({ headers: asShop(), body: { code: (await issue()).code } }),
  redeemVoucher: async () => ({
    headers: asShop(),
    body: { code: (await issue()).code, externalRef: newOrder(), note: "Till 4" },
  }),
  releaseReservation: async () => ({
    headers: asShop(),
    body: { ticket: (await shop.reserve((await issue()).code)).body.ticket, reason: "customer left" },
  }),
  lookUpVoucher: async () => ({ headers: asShop(), parameters: { codeOrTicket: (await issue()).code } }),
  readVoucherEvents: async () => ({
    headers: asShop(),
    parameters: { codeOrTicket: (await issue()).code },
    query: "?after=0&limit=10",
  }),
  readRedemptionReceipt: async () => {
    const { externalRef } = await redeemed();
    await sequencer.run();
    return { headers: asShop(), parameters: { externalRef } };
  },
  readReceiptByReference: async () => {
    const { externalRef } = await redeemed();
    await sequencer.run();
    return { headers: asShop(), query: `?externalRef=${externalRef}` };
  },
  readEventReceipt: async () => {
    const { code } = await issue();
    await sequencer.run();
    return { headers: asShop(), parameters: { codeOrTicket: code, sequence: "1" } };
  },
  readEventProof: async () => {
    const { id } = await issue();
    await sequencer.run();
    return { parameters: { entityType: "VoucherInstance", entityId: id, sequence: "1" } };
  },
  listRedemptions: async () => ({ headers: asShop(), query: "?from=2026-01-01T00:00:00Z&limit=5" }),
  readEvents: async () => ({ headers: asShop(), query: "?limit=5&types=voucher.instance.issued&wait=1" }),
  readStatement: async () => ({ headers: asShop(), parameters: { month: "2026-11" } }),
  readRedemption: async () => ({ headers: asShop(), parameters: { externalRef: (await redeemed()).externalRef } }),
  listWebhooks: async () => ({ headers: (await makeWebhook()).headers }),
  createWebhook: async () => ({ headers: (await makeWebhook()).headers, body: { url: "https://shop.example.com/" } }),
  readWebhook: () => makeWebhook(),
  changeWebhook: async () => ({ ...(await makeWebhook()), body: { enabled: true } }),
  deleteWebhook: () => makeWebhook(),
  testWebhook: () => makeWebhook(),
  rotateWebhook: () => makeWebhook(),
  replayWebhook: async () => ({ ...(await makeWebhook()), body: { eventIds: ["vch_x-2"] } }),
  listWebhookDeliveries: async () => ({ ...(await makeWebhook()), query: "?state=Failed&limit=5" }),
  advanceSandbox: async () => ({ headers: { "x-api-key": keys.sandbox }, body: { seconds: 1 } }),
  readPublicEvents: async () => ({ parameters: { entityType: "VoucherInstance", entityId: (await issue()).id } }),
  readListings: async () => {
    await makeOffer(servers.db, 1);
    return { headers: await asUser(), query: "?limit=5" };
  },
  readListing: async () => ({
    headers: await asUser(),
    parameters: { id: (await makeOffer(servers.db, 1)).listingId },
  }),
  openLink: async () => {
    const offer = await makeOffer(servers.db, 1);
    return { parameters: { code: (await makeReferral(servers.db, offer)).code } };
  },
  buyListing: async () => acquireCall("buyListing", await makeOffer(servers.db, 1)),
  buyProduct: async () => acquireCall("buyProduct", await makeOffer(servers.db, 1)),
  claimProduct: async () => acquireCall("claimProduct", await makeOffer(servers.db, 1)),
  claimByLink: async () => acquireCall("claimByLink", await makeOffer(servers.db, 1)),
  listBrands: async () => ({ headers: asIssuer(), query: "?limit=5" }),
  listProducts: async () => ({ headers: asIssuer(), query: `?brand=${partner.brandId}` }),
  listBatches: async () => ({ headers: asIssuer(), query: `?product=${partner.productId}&limit=5` }),
  readBatch: async () => ({ headers: asIssuer(), parameters: { id: await newBatch() } }),
  listBatchVouchers: async () => ({ headers: asIssuer(), parameters: { id: await newBatch() }, query: "?cursor=1" }),
  findVouchers: async () => ({ headers: asIssuer(), query: `?code=${(await issue()).code}` }),
  listListings: async () => ({ headers: asIssuer(), query: `?batch=${await newBatch()}` }),
  listContracts: async () => ({ headers: asIssuer(), query: "?status=Active&limit=5" }),
  listLinks: async () => ({ headers: asIssuer(), query: `?contract=${await newContract()}` }),
  extendVoucher: async () => ({ headers: asIssuer(), body: { code: (await issue()).code, validUntil: "2099-12-31" } }),
  extendBatch: async () => ({
    headers: asIssuer(),
    parameters: { id: await newBatch() },
    body: { validUntil: "2099-12-31" },
  }),
  suspendVoucher: async () => ({ headers: asIssuer(), body: { code: (await issue()).code, reason: "stolen" } }),
  resumeVoucher: async () => ({ headers: asIssuer(), body: { code: (await issue()).code } }),
  suspendBatch: async () => ({ headers: asIssuer(), parameters: { id: await newBatch() }, body: { reason: "stolen" } }),
  resumeBatch: async () => ({ headers: asIssuer(), parameters: { id: await newBatch() }, body: {} }),
  voidVoucher: async () => ({ headers: asIssuer(), body: { code: (await issue()).code, reason: "returned" } }),
  voidBatch: async () => ({ headers: asIssuer(), parameters: { id: await newBatch() }, body: {} }),
  renameBrand: async () => ({
    headers: asIssuer(),
    parameters: { id: partner.brandId },
    body: { name: `Brand ${newOrder()}` },
  }),
  changeBrand: async () => ({
    headers: asIssuer(),
    parameters: { id: partner.brandId },
    body: { logo: EXAMPLE.picture, colour: "#0a7f5a" },
  }),
  createProduct: async () => ({
    headers: asIssuer(),
    parameters: { id: partner.brandId },
    body: { key: newOrder(), name: "Day", type: "Service", retailPriceUsd: 19.9, priceUsd: 15 },
  }),
  issueBatch: async () => ({
    headers: asIssuer(),
    parameters: { id: partner.productId },
    body: { issueRef: newOrder(), count: 1, validUntil: "2099-12-31" },
  }),
  createListing: async () => ({ headers: asIssuer(), parameters: { id: await newBatch() } }),
  offerContract: async () => ({ headers: asIssuer(), parameters: { id: partner.brandId }, body: { user: newUser() } }),
  acceptContract: async () => ({ headers: asIssuer(), parameters: { id: await newContract() } }),
  declineContract: async () => ({ headers: asIssuer(), parameters: { id: await newContract() } }),
  endContract: async () => ({ headers: asIssuer(), parameters: { id: await newContract("accept") } }),
  createLink: async () => ({
    headers: asIssuer(),
    parameters: { id: await newContract() },
    body: { product: partner.productId },
  }),
  health: async () => ({}),
  readiness: async () => ({}),
};

const asShop = () => ({ "x-api-key": keys.shop });

const asIssuer = () => ({ "x-api-key": keys.issuer });

const newBatch = async () => (await issueTestBatch(servers.db, partner, 2)).batchId;

/** Makes a new contract of the partner's brand, offered or in a later state. */
async function newContract(move?: string): Promise<string> {
  const post = async (path: string, body: object) => {
    const reply = await send("POST", `${api.url}/issuer/${path}`, { key: keys.issuer, body });
    expect(reply.status).toBe(200);
    return reply.body;
  };
  const { id } = await post(`brands/${partner.brandId}/contracts`, { user: newUser() });
  if (move !== undefined) await post(`contracts/${id}/${move}`, {});
  return id;
}
