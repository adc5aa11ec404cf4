import { describe, expect, it } from "vitest";
import { makeApiKey } from "../../../src/core/keys/api-keys.ts";
import { createApp } from "../../../src/open/app.ts";
import { partnerClient, type Reply, send } from "../../support/client.ts";
import { makeOffer, newUser, signedIn } from "../../support/marketplace.ts";
import type { TestApi } from "../../support/service.ts";
import { makeKey, provisioning } from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";
import { signUser } from "../../support/user-tokens.ts";

/** A limit per second, so low that many calls exceed it even on the slowest machine. */
const RPS = 3;
const STORM = 30;
/** Calls per second, far above what these tests send. */
const AMPLE = 100_000;
const UNKNOWN = "7Q4K-9MZX-2HTB-W8RC";

const service = useService({
  apis: [
    { RATE_LIMIT_RPS: String(RPS), TRUST_PROXY: "127.0.0.0/8" },
    { RATE_LIMIT_RPS: String(AMPLE), OPS_TOKEN: "a token of operators" },
  ],
  users: true,
});
const { api, servers, issuer, partner } = service;
const ample = service.apis[1];

const newKey = async () => (await makeKey(servers.db, partner.organizationId)).key;
const madeUpKey = () => makeApiKey(provisioning(servers.db).randomBytes);

let addresses = 0;

const from = (address: string) => ({ "x-forwarded-for": address });

describe("the rate limit headers", () => {
  it("each response to a partner, including a refusal, has the rate limit and the remaining calls", async () => {
    const client = partnerClient(ample.url, await newKey());
    const { code } = await service.issue();
    const { ticket } = (await client.reserve(code)).body;
    const answers: [string, number, Reply][] = [
      ["read", 200, await client.lookUp(code)],
      ["read", 200, await client.events(code)],
      ["read", 404, await client.lookUp(UNKNOWN)],
      ["move", 200, await client.reserve(code)],
      ["move", 200, await client.redeem({ ticket, externalRef: "fields" })],
      ["move", 200, await client.release(ticket)],
      ["move", 400, await client.redeem({ externalRef: "r" })],
    ];
    for (const [policy, status, reply] of answers) {
      expect(reply.status).toBe(status);
      expect(reply.headers.get("ratelimit-policy")).toBe(`"${policy}";q=${AMPLE};w=1`);
      expect(reply.headers.get("ratelimit")).toMatch(new RegExp(`^"${policy}";r=\\d+;t=1$`));
      expect(reply.headers.get("retry-after")).toBeNull();
    }
  });

  it("the rate limit headers count down by one with each request", async () => {
    const client = partnerClient(api.url, await newKey());
    // The calls span at most two of the limiter's windows of a second. Within a window, each call leaves one fewer.
    const left: number[] = [];
    for (let i = 0; i < 3; i++) {
      const { headers } = await client.lookUp(UNKNOWN);
      left.push(Number(/;r=(\d+);/.exec(headers.get("ratelimit") ?? "")?.[1]));
    }
    expect(left[0]).toBe(RPS - 1);
    for (const [index, count] of left.entries()) {
      if (index > 0) expect([RPS - 1, Number(left[index - 1]) - 1]).toContain(count);
    }
  });

  it("a 429 has the rate limit headers and the time to wait in Retry-After", async () => {
    const client = partnerClient(api.url, await newKey());
    const refused = await limited(() => client.lookUp(UNKNOWN));
    expect(refused.body).toStrictEqual({
      error: expect.stringMatching(/^[A-Z].*\.$/),
      code: "rate_limited",
      requestId: expect.any(String),
    });
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(refused.headers.get("ratelimit-policy")).toBe(`"read";q=${RPS};w=1`);
    expect(refused.headers.get("ratelimit")).toBe('"read";r=0;t=1');
    await until(async () => (await client.lookUp(UNKNOWN)).status === 404);
  });
});

describe("an API key's rate limit", () => {
  it("a key has separate rate limits for reads and changes, so reads cannot prevent redeems", async () => {
    const [client, calm] = [partnerClient(api.url, await newKey()), partnerClient(api.url, await newKey())];
    const vouchers = await Promise.all(Array.from({ length: 3 }, () => service.issue()));
    for (const { code } of vouchers) {
      await limited(() => client.lookUp(code));
      const flood = storm(() => client.lookUp(code));
      // Reads do not count against the limit on changes, and the key made no change in the last second.
      expect((await client.redeem({ code, externalRef: `move ${code}` })).status).toBe(200);
      expect((await calm.lookUp(code)).status).toBe(200);
      await flood;
    }
  });

  it("an API key's rate limit is checked after authentication and before the request body", async () => {
    const scoped = await makeKey(servers.db, partner.organizationId, { scopes: ["voucher.read"] });
    const elsewhere = await makeKey(servers.db, partner.organizationId, { allowIps: ["192.0.2.1"] });
    const codesOf = async (key: string) => {
      const redeem = () => send("POST", `${api.url}/partner/vouchers/redeem`, { key, body: "not JSON" });
      return new Set((await storm(redeem)).map(({ body }) => body.code));
    };
    expect(await codesOf(scoped.key)).toEqual(new Set(["missing_scope"]));
    expect(await codesOf(elsewhere.key)).toEqual(new Set(["address_not_allowed"]));
    expect(await codesOf(await newKey())).toEqual(new Set(["invalid_json", "rate_limited"]));
  });

  it("an API key's rate limit counts the requests to all API processes", async () => {
    const other = await service.startApi({ RATE_LIMIT_RPS: String(RPS) });
    const key = await newKey();
    const lookUp = (url: string) => partnerClient(url, key).lookUp(UNKNOWN);
    // The other process gets one call at a time, and refuses it because of the calls here.
    await until(async () => {
      await storm(() => lookUp(api.url));
      return isLimited(await lookUp(other.url));
    });
  });

  it("RATE_LIMIT_RPS=0 disables all rate limits", async () => {
    const off = await service.startApi();
    const client = partnerClient(off.url, await newKey());
    const open = ["/partner/vouchers/x", "/integrity/events/VoucherInstance/x", "/nothing"];
    for (const call of [() => client.lookUp(UNKNOWN), ...open.map((path) => () => send("GET", off.url + path))]) {
      for (const { status, headers } of await storm(call)) {
        expect(status).not.toBe(429);
        expect([headers.has("ratelimit"), headers.has("ratelimit-policy")]).toEqual([false, false]);
      }
    }
  });
});

it("a user's rate limit is a tenth of a key's, separate for acquisitions and reads", async () => {
  const offer = await makeOffer(servers.db, 5);
  const reader = await signedIn(api.url, issuer, newUser());
  const reply = await reader.listing(offer.listingId);
  expect(reply.headers.get("ratelimit-policy")).toBe('"browse";q=1;w=1');
  await limited(() => reader.listing(offer.listingId));
  // After the reads, the same user may still claim, and another user may still read.
  const taken = await reader.claimProduct(offer.productId);
  expect(taken.status).toBe(200);
  expect(taken.headers.get("ratelimit-policy")).toBe('"take";q=1;w=1');
  expect((await (await signedIn(api.url, issuer, newUser())).listing(offer.listingId)).status).toBe(200);
  const refused = await limited(() => reader.claimProduct(offer.productId));
  expect(refused.body.code).toBe("rate_limited");
});

describe("an address's rate limit", () => {
  const lookUp = (address: string, key: string) =>
    send("GET", `${api.url}/partner/vouchers/${UNKNOWN}`, { key, headers: from(address) });
  const unknown = (address: string) => () => lookUp(address, madeUpKey());
  const get = (path: string, authorization?: string) => (address: string) =>
    send("GET", `${api.url}${path}`, { headers: { ...from(address), ...(authorization && { authorization }) } });
  const claim = (address: string) => send("POST", `${api.url}/products/x/claim`, { headers: from(address) });
  const FORM = { "content-type": "application/x-www-form-urlencoded" };
  const sendForm = (address: string) =>
    send("POST", `${api.url}/check`, { headers: { ...from(address), ...FORM }, body: `voucher=${"x".repeat(20_000)}` });
  type Call = (address: string) => Promise<Reply>;
  const calls: [string, string, Call][] = [
    ["without a key", "refused", get("/partner/vouchers/x")],
    ["with a mistyped key", "refused", (address) => lookUp(address, "pvk_x")],
    ["with an unknown key", "refused", (address) => unknown(address)()],
    ["without a token", "refused", claim],
    ["with a bad token where none is needed", "refused", get("/marketplace/listings", "Bearer x")],
    ["that reads the market", "address", get("/marketplace/listings")],
    ["that reads public chains", "address", get("/integrity/events/VoucherInstance/x")],
    ["that tries paths", "address", get("/nothing")],
    ["that sends a form whose text is too long", "address", sendForm],
  ];

  it.each(calls)("an address's rate limit counts a request %s", async (_what, policy, call) => {
    const address = newAddress();
    const first = await call(address);
    expect(policyOf(first)).toBe(policy);
    expect(isLimited(first)).toBe(false);
    const refused = await limited(() => call(address));
    expect(refused.body.code).toBe("rate_limited");
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(refused.headers.has("www-authenticate")).toBe(false);
    expect(isLimited(await call(newAddress()))).toBe(false);
  });

  it("an address has separate rate limits for failed authentications and for public requests", async () => {
    for (const policy of ["refused", "address"]) {
      const address = newAddress();
      const callsOf = (own: boolean) => calls.filter(([, name]) => (name === policy) === own).map(([, , call]) => call);
      // The other tests show which limit counts each call.
      const [[flooding, same], [other]] = [callsOf(true), callsOf(false)] as unknown as [[Call, Call], [Call]];
      const flooded = () => storm(() => flooding(address));
      await until(async () => {
        await flooded();
        return isLimited(await same(address));
      });
      const flood = flooded();
      await until(async () => !isLimited(await other(address)));
      await flood;
    }
  });

  it("an address whose failed authentications are over the limit can still use valid keys", async () => {
    const address = newAddress();
    const key = await newKey();
    const good = () => lookUp(address, key);
    await until(async () => (await good()).status === 404);
    for (let i = 0; i < 3; i++) {
      const flood = storm(unknown(address), 2 * STORM);
      await until(async () => (await good()).status === 404);
      expect((await flood).some(isLimited)).toBe(true);
    }
  });

  it("an address over its limit for failed authentications can use new valid keys and tokens", async () => {
    const address = newAddress();
    for (let i = 0; i < 3; i++) {
      const fresh = await newKey();
      const flood = storm(unknown(address), 2 * STORM);
      expect((await lookUp(address, fresh)).status).toBe(404);
      const token = await signUser(issuer, newUser());
      expect((await get("/marketplace/listings", `Bearer ${token}`)(address)).status).toBe(200);
      expect((await flood).some(isLimited)).toBe(true);
    }
  });
});

describe("the address that a rate limit counts", () => {
  const unknownPath = (to: TestApi, forwarded: string) =>
    send("GET", `${to.url}/nothing`, { headers: from(forwarded) });

  it("a rate limit counts the address that the trusted proxy added, not an address from the caller", async () => {
    const address = newAddress();
    await limited(() => unknownPath(api, `${newAddress()}, ${address}`));
    expect(isLimited(await unknownPath(api, newAddress()))).toBe(false);
  });

  // caller-network.test.ts tests the other spellings.
  it.each([
    ["an IPv4 address in IPv6 notation and with a port", "203.0.113.7", "::FFFF:cb00:7107", "203.0.113.7:51234"],
    ["all addresses of a /64", "2001:db8:1:2::1", "[2001:db8:1:2:ffff:ffff:ffff:ffff]:1024"],
    ["not an address", "unknown", "203.0.113.7:x"],
  ])("a rate limit counts different spellings as one address: %s", async (_what, ...spellings) => {
    for (const spelling of spellings) {
      await until(async () => {
        await storm(() => unknownPath(api, spellings[0] ?? ""));
        return isLimited(await unknownPath(api, spelling));
      });
    }
    for (const other of ["203.0.113.21:51234", "2001:db8:5:7::1"]) {
      expect(isLimited(await unknownPath(api, other))).toBe(false);
    }
  });
});

it("every route has a rate limit, except health probes", async () => {
  const paths = createApp(ample.ctx).router.stack.flatMap(({ route }) => (route === undefined ? [] : [route.path]));
  expect(paths.length).toBeGreaterThan(15);
  const unlimited = new Set<string>();
  for (const path of new Set(paths)) {
    for (const [method, accept] of [
      ["GET", "*/*"],
      ["GET", "text/html"],
      ["POST", "*/*"],
    ] as const) {
      const url = `${ample.url}${path.replaceAll(/:\w+/g, "x")}`;
      const { status, headers } = await fetch(url, { method, headers: { accept } });
      if (status !== 405 && !headers.has("ratelimit")) unlimited.add(path);
    }
  }
  expect([...unlimited].sort()).toEqual(["/healthz", "/readyz"]);
});

it("the queue dashboard has a rate limit for requests without the password", async () => {
  const { status, headers } = await fetch(`${ample.url}/ops/queues`);
  expect(status).toBe(401);
  expect(headers.get("ratelimit-policy")).toMatch(/^"refused"/);
});

/** An address without earlier calls. */
function newAddress(): string {
  addresses += 1;
  return `198.51.${100 + (addresses >> 8)}.${addresses & 255}`;
}

function storm(call: () => Promise<Reply>, calls = STORM): Promise<Reply[]> {
  return Promise.all(Array.from({ length: calls }, call));
}

function isLimited(reply: Reply): boolean {
  return reply.status === 429;
}

function policyOf({ headers }: Reply): string | undefined {
  return /^"([a-z]+)"/.exec(headers.get("ratelimit-policy") ?? "")?.[1];
}

/** Repeats the call until the rate limit refuses one. */
function limited(call: () => Promise<Reply>): Promise<Reply> {
  return until(async () => (await storm(call)).find(isLimited));
}
