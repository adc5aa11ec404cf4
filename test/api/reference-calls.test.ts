import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ErrorCode } from "../../src/domain/errors.ts";
import { ERRORS } from "../../src/http/error-map.ts";
import type { HoldMove } from "../../src/services/move-holds.ts";
import { voidVoucher } from "../../src/services/void-voucher.ts";
import { OPERATIONS, type Operation } from "../support/api-description.ts";
import { partnerClient, type Reply, send } from "../support/client.ts";
import { makeGate } from "../support/gate.ts";
import { assertInvariants } from "../support/invariants.ts";
import { inSeconds, makeOffer, makeReferral, newPayment, newUser } from "../support/marketplace.ts";
import { besideTransaction, whileLocked } from "../support/outside-transaction.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi, type TestWorker } from "../support/service.ts";
import { issueVoucher, makeKey, makePartner, provisioning, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { type IssuerKey, type KeysFile, makeIssuerKey, signUser, writeKeysFile } from "../support/user-tokens.ts";

// Walks the API's reference: calls each operation with input made for it, and meets each refusal that it describes. That every
// answer is what the reference says it is, is checked by `send`, here and in every other test.

let servers: TestServers;
let api: TestApi;
/** Has no database behind it. */
let stranded: TestApi;
/** Waits for no worker longer than this test wants to. */
let hasty: TestApi;
/** Lets each caller call once a second. */
let strict: TestApi;
/** Lets each key miss once a minute. */
let wary: TestApi;
let worker: TestWorker;
let issuer: IssuerKey;
let keysFile: KeysFile;
let partner: TestPartner;
let keys: Record<"shop" | "till" | "reader" | "redeemer" | "unbound" | "elsewhere", string>;

beforeAll(async () => {
  servers = await openTestServers();
  issuer = await makeIssuerKey();
  keysFile = writeKeysFile(issuer);
  const env = { AUTH_JWKS_URL: keysFile.url };
  [api, stranded, hasty, strict, wary, worker] = await Promise.all([
    startApi(servers, env),
    startApi(servers, { ...env, DATABASE_URL: "postgresql://nobody@127.0.0.1:1/nothing" }),
    startApi(servers, { REDEEM_WAIT_MS: "300" }),
    startApi(servers, { ...env, RATE_LIMIT_RPS: "1" }),
    startApi(servers, { MISS_LIMIT_PER_MINUTE: "1" }),
    startWorkers(servers),
  ]);
  partner = await makePartner(servers.db);
  const make = async (organizationId: string | null, options?: Parameters<typeof makeKey>[2]) =>
    (await makeKey(servers.db, organizationId, options)).key;
  keys = {
    shop: await make(partner.organizationId),
    till: await make(partner.organizationId),
    reader: await make(partner.organizationId, { scopes: ["voucher.read"] }),
    redeemer: await make(partner.organizationId, { scopes: ["voucher.redeem"] }),
    unbound: await make(null),
    elsewhere: await make(partner.organizationId, { allowIps: ["192.0.2.1"] }),
  };
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await Promise.all([api, stranded, hasty, strict, wary, worker].map((each) => each.close()));
  await servers.close();
  keysFile.remove();
});

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

const asShop = () => ({ "x-api-key": keys.shop });
const asUser = async () => ({ authorization: `Bearer ${await signUser(issuer, newUser())}` });
const issue = (options = {}) => issueVoucher(servers.db, partner, options);
const shop = () => partnerClient(api.url, keys.shop);
let orders = 0;
const newOrder = () => `order-${++orders}`;

/** A call that each operation answers with 200, on things of its own. */
const VALID: Record<string, () => Promise<Call>> = {
  reserveVoucher: async () => ({ headers: asShop(), body: { code: (await issue()).code } }),
  redeemVoucher: async () => ({
    headers: asShop(),
    body: { code: (await issue()).code, externalRef: newOrder(), note: "Till 4" },
  }),
  releaseReservation: async () => ({
    headers: asShop(),
    body: { ticket: (await shop().reserve((await issue()).code)).body.ticket, reason: "customer left" },
  }),
  lookUpVoucher: async () => ({ headers: asShop(), parameters: { codeOrTicket: (await issue()).code } }),
  readVoucherEvents: async () => ({
    headers: asShop(),
    parameters: { codeOrTicket: (await issue()).code },
    query: "?after=0&limit=10",
  }),
  readPublicEvents: async () => ({ parameters: { entityType: "VoucherInstance", entityId: (await issue()).id } }),
  readListings: async () => {
    await makeOffer(servers.db, 1);
    return { headers: await asUser(), query: "?limit=5" };
  },
  readListing: async () => ({
    headers: await asUser(),
    parameters: { id: (await makeOffer(servers.db, 1)).listingId },
  }),
  buyListing: async () => takeCall("buyListing", await makeOffer(servers.db, 1)),
  buyProduct: async () => takeCall("buyProduct", await makeOffer(servers.db, 1)),
  claimProduct: async () => takeCall("claimProduct", await makeOffer(servers.db, 1)),
  claimByLink: async () => takeCall("claimByLink", await makeOffer(servers.db, 1)),
  health: async () => ({}),
  readiness: async () => ({}),
};

type Offer = Awaited<ReturnType<typeof makeOffer>>;

/** How to take from an offer by an operation. */
async function takeCall(operationId: string, offer: Offer): Promise<Call> {
  const headers = await asUser();
  const body = operationId.startsWith("buy") ? { paymentRef: newPayment() } : {};
  if (operationId === "buyListing") return { headers, parameters: { id: offer.listingId }, body };
  if (operationId === "claimByLink") {
    return { headers, parameters: { code: (await makeReferral(servers.db, offer)).code }, body };
  }
  return { headers, parameters: { id: offer.productId }, body };
}

type Meet = (operation: Operation, valid: Call) => Promise<Reply>;

const withHeaders =
  (headers: () => Record<string, string>): Meet =>
  (operation, valid) =>
    perform(operation, { ...valid, headers: { ...valid.headers, ...headers() } });

const withBody =
  (body: () => Promise<Record<string, unknown>> | Record<string, unknown>): Meet =>
  async (operation, valid) =>
    perform(operation, { ...valid, body: { ...valid.body, ...(await body()) } });

const withParameter =
  (name: string, value: string): Meet =>
  (operation, valid) =>
    perform(operation, { ...valid, parameters: { ...valid.parameters, [name]: value } });

/** Takes from an offer that is made like this. */
const fromOffer =
  (options: Parameters<typeof makeOffer>[2]): Meet =>
  async (operation) =>
    perform(operation, await takeCall(operation.operationId, await makeOffer(servers.db, 1, options)));

/** Where a code stands in a body or a path, this one stands. */
const ofVoucher =
  (code: () => Promise<string>): Meet =>
  async (operation, valid) => {
    const named = await code();
    if (operation.method === "get") return withParameter("codeOrTicket", named)(operation, valid);
    return withBody(() => ({ code: named }))(operation, valid);
  };

/** How to meet each refusal. */
const MEET: Partial<Record<ErrorCode, Meet>> = {
  missing_key: withHeaders(() => ({ "x-api-key": "" })),
  unknown_key: withHeaders(() => ({ "x-api-key": "pvk_unheard-of" })),
  key_without_organization: withHeaders(() => ({ "x-api-key": keys.unbound })),
  address_not_allowed: withHeaders(() => ({ "x-api-key": keys.elsewhere })),
  missing_scope: (operation, valid) => {
    const other = operation.security[0]?.apiKey?.includes("voucher.read") ? keys.redeemer : keys.reader;
    return withHeaders(() => ({ "x-api-key": other }))(operation, valid);
  },
  missing_token: withHeaders(() => ({ authorization: "Basic dXNlcjpzZWNyZXQ=" })),
  invalid_token: withHeaders(() => ({ authorization: "Bearer not.a.token" })),
  invalid_json: (operation, valid) => perform(operation, { ...valid, body: "[]" as never }),
  invalid_request: (operation, valid) =>
    operation.requestBody === undefined
      ? perform(operation, { ...valid, query: "?limit=0" })
      : withBody(() => ({ more: "\0" }))(operation, valid),
  body_too_large: withBody(() => ({ more: "x".repeat(17_000) })),
  unsupported_encoding: withHeaders(() => ({ "content-encoding": "compress" })),

  voucher_not_found: ofVoucher(async () => "7Q4K-9MZX-2HTB-W8RC"),
  entity_not_found: withParameter("entityId", "vch_unheard-of"),
  listing_not_found: withParameter("id", "lst_unheard-of"),
  product_not_found: withParameter("id", "prd_unheard-of"),
  link_not_found: withParameter("code", "unheard-of"),

  voucher_used: ofVoucher(async () => {
    const { code } = await issue();
    expect((await shop().redeem({ code, externalRef: newOrder() })).status).toBe(200);
    return code;
  }),
  voucher_voided: ofVoucher(async () => {
    const { code } = await issue();
    await voidVoucher(provisioning(servers.db), partner.organizationId, code, null);
    return code;
  }),
  voucher_expired: ofVoucher(async () => (await issue({ validUntil: inSeconds(-1) })).code),
  reservation_ended: ofVoucher(async () => {
    const { ticket } = (await shop().reserve((await issue()).code)).body;
    await shop().release(ticket);
    return ticket;
  }),
  token_mismatch: withBody(() => ({ token: "not-the-token" })),
  voucher_reserved: ofVoucher(async () => {
    const { code } = await issue();
    await partnerClient(api.url, keys.till).reserve(code);
    return code;
  }),

  rate_limited: (operation, valid) =>
    until(async () => {
      const replies = await Promise.all(Array.from({ length: 10 }, () => perform(operation, valid, strict.url)));
      return replies.find(({ status }) => status === 429);
    }),
  too_many_misses: async (operation, valid) => {
    const { key } = await makeKey(servers.db, partner.organizationId);
    expect((await partnerClient(wary.url, key).lookUp("7Q4K-9MZX-2HTB-W8RC")).status).toBe(404);
    return perform(operation, { ...valid, headers: { "x-api-key": key } }, wary.url);
  },

  referrers_only: fromOffer({ audience: "ReferrerOnly" }),
  window_closed: fromOffer({ windows: {} }),
  sold_out: async (operation) => {
    const offer = await makeOffer(servers.db, 1);
    const [first, second] = [
      await takeCall(operation.operationId, offer),
      await takeCall(operation.operationId, offer),
    ];
    expect((await perform(operation, first)).status).toBe(200);
    return perform(operation, second);
  },

  voucher_busy: async (operation, valid) => {
    if (operation.tags.includes("Marketplace")) {
      const offer = await makeOffer(servers.db, 1);
      const ids = offer.vouchers.map(({ id }) => id);
      return whileLocked(servers.db, ids, async () => perform(operation, await takeCall(operation.operationId, offer)));
    }
    const named = String(valid.body?.code ?? valid.body?.ticket);
    const { id } = (await shop().lookUp(named)).body.voucher;
    return whileLocked(servers.db, [id], () => perform(operation, valid));
  },
  redeem_unknown: async (operation, valid) => {
    const { id } = (await shop().lookUp(String(valid.body?.code))).body.voucher;
    // A worker has the job and waits for the row; nobody can say yet what will come of it.
    return whileLocked(servers.db, [id], () => perform(operation, valid, hasty.url));
  },
  redeem_timeout: async (operation, valid) => {
    await worker.close();
    try {
      return await perform(operation, valid, hasty.url);
    } finally {
      worker = await startWorkers(servers);
    }
  },
  overloaded: async (operation, valid) => {
    const { takings, publicReads } = api.ctx;
    const call = () => perform(operation, valid);
    if (operation.method === "get" && !operation.tags.includes("Partner")) return whileWaiting(60, publicReads, call);
    if (operation.tags.includes("Marketplace")) return whileWaiting(2_100, takings.free, call);
    return untilOverloaded(operation, valid);
  },
  unavailable: (operation, valid) => perform(operation, valid, stranded.url),
};

/** Runs `work` while this many wait for their turn, or as many as may. */
async function whileWaiting(
  count: number,
  turn: (work: () => Promise<void>) => Promise<void>,
  work: () => Promise<Reply>,
): Promise<Reply> {
  const gate = makeGate();
  const waiting = Array.from({ length: count }, () => turn(() => gate.pass()).catch(() => undefined));
  try {
    return await work();
  } finally {
    gate.open();
    await Promise.all(waiting);
  }
}

/** Calls while as many reads, or moves of holds, wait as may in a process, until a call is turned away for it. */
async function untilOverloaded(operation: Operation, valid: Call): Promise<Reply> {
  const { id: voucherId } = await issue();
  const { voucherReads, holdLanes } = api.ctx;
  const wanted = { organizationId: partner.organizationId, codeKey: null, ticket: null, externalRef: null };
  const move: HoldMove = { kind: "release", voucherId, ticket: "rsv_unheard-of", reason: null };
  const submit =
    operation.operationId === "releaseReservation" ? () => holdLanes.submit(move) : () => voucherReads.submit(wanted);
  let done = false;
  const keepFull = async () => {
    while (!done) {
      for (let i = 0; i < 200; i++) submit().catch(() => undefined);
      await nextTurn();
    }
  };
  return besideTransaction(servers.db, async (outside) => {
    await outside.query("LOCK TABLE vouchers IN ACCESS EXCLUSIVE MODE");
    const filling = keepFull();
    try {
      return await until(async () => {
        const reply = await perform(operation, valid);
        return reply.body.code === "overloaded" ? reply : null;
      });
    } finally {
      done = true;
      await filling;
    }
  }).finally(() => Promise.all([voucherReads.drain(), holdLanes.drain()]));
}

/** Codes whose sentence names what was wrong, so that an example is only one of many. */
const SENTENCE_VARIES: ErrorCode[] = [
  "invalid_request",
  "invalid_json",
  "missing_scope",
  "voucher_busy",
  "overloaded",
  "unavailable",
];

describe.each(
  OPERATIONS.map((operation) => [operation.operationId, operation] as const),
)("%s", (operationId, operation) => {
  const codes = Object.entries(operation.responses)
    .filter(([status]) => Number(status) >= 400)
    .flatMap(([status, { content }]) =>
      Object.keys(content["application/json"].examples ?? {}).map((code) => [status, code as ErrorCode] as const),
    );

  it("answers a valid call with 200", async () => {
    const call = await VALID[operationId]?.();
    if (call === undefined) throw new Error("no valid call is made for it");
    expect((await perform(operation, call)).status).toBe(200);
  });

  it.each(codes)("refuses with %s %s", async (status, code) => {
    const meet = MEET[code];
    const valid = await VALID[operationId]?.();
    if (meet === undefined || valid === undefined) throw new Error(`nothing is made to meet ${code}`);
    const reply = await meet(operation, valid);
    expect({ status: reply.status, code: reply.body.code }).toEqual({ status: Number(status), code });
    if (!SENTENCE_VARIES.includes(code)) expect(reply.body.error).toBe(ERRORS[code].example);
  });
});

describe("any address", () => {
  it("answers 404 not_found where nothing is", async () => {
    const { status, body } = await send("GET", `${api.url}/partner`);
    expect({ status, code: body.code, error: body.error }).toEqual({
      status: 404,
      code: "not_found",
      error: ERRORS.not_found.example,
    });
  });

  it("answers 405 method_not_allowed to other methods, and lists those that it answers to", async () => {
    const { status, body, headers } = await send("DELETE", `${api.url}/products/prd_x/buy`);
    expect({ status, code: body.code, allow: headers.get("allow"), error: body.error }).toEqual({
      status: 405,
      code: "method_not_allowed",
      allow: "POST",
      error: ERRORS.method_not_allowed.example,
    });
  });
});
