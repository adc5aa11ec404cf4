import { describe, expect, it } from "vitest";
import { selectKeys } from "../../src/db/api-keys.ts";
import { createKey, endKey, rotateKey } from "../../src/services/admin/manage-keys.ts";
import { partnerClient, type Reply, send } from "../support/client.ts";
import { dumpRows } from "../support/row-dump.ts";
import type { TestApi } from "../support/service.ts";
import { issueVoucher, makeKey, makePartner, provisioning } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const service = useService({ apis: [{}, { TRUST_PROXY: "127.0.0.0/8, 10.0.0.0/8, ::1" }], workers: [] });
const { api, servers, partner } = service;
/** Believes X-Forwarded-For of callers on this machine. */
const behindProxy = service.apis[1];

interface PartnerRoute {
  method: string;
  path: string;
  scope: "voucher.read" | "voucher.redeem";
}

const ROUTES: PartnerRoute[] = [
  { method: "GET", path: "7Q4K-9MZX-2HTB-W8RC", scope: "voucher.read" },
  { method: "HEAD", path: "7Q4K-9MZX-2HTB-W8RC", scope: "voucher.read" },
  { method: "GET", path: "7Q4K-9MZX-2HTB-W8RC/events", scope: "voucher.read" },
  { method: "POST", path: "reserve", scope: "voucher.redeem" },
  { method: "POST", path: "redeem", scope: "voucher.redeem" },
  { method: "POST", path: "release", scope: "voucher.redeem" },
];

const named = ROUTES.map((route) => [`${route.method} /partner/vouchers/${route.path}`, route] as const);

function call(
  { method, path }: PartnerRoute,
  key: string | undefined,
  options: { api?: TestApi; headers?: Record<string, string>; body?: unknown } = {},
): Promise<Reply> {
  const body = method === "POST" ? (options.body ?? {}) : undefined;
  return send(method, `${(options.api ?? api).url}/partner/vouchers/${path}`, {
    ...(key === undefined ? {} : { key }),
    ...(options.headers === undefined ? {} : { headers: options.headers }),
    ...(body === undefined ? {} : { body }),
  });
}

/** A refusal before anything about the voucher is said. HEAD has no body to look into. */
function expectRefused({ status, body }: Reply, expected: { status: number; code: string }): void {
  expect(status).toBe(expected.status);
  if (body === null) return;
  expect(body).toStrictEqual({
    error: expect.stringMatching(/^[A-Z].*\.$/),
    code: expected.code,
    requestId: expect.any(String),
  });
}

/** Whether a request came past authentication: what it then met is the route's business. */
function isThrough({ status }: Reply): boolean {
  return status !== 401 && status !== 403;
}

const lookUp = ROUTES[0] as PartnerRoute;

/** Calls until a key is refused; when the last call that came through was sent, or 0. */
async function lastCallThrough(secret: string, process: TestApi = api): Promise<number> {
  let last = 0;
  await until(async () => {
    const sentAt = Date.now();
    const through = isThrough(await call(lookUp, secret, { api: process }));
    if (through) last = sentAt;
    return !through;
  });
  return last;
}
const key = (organizationId: string | null, options: Parameters<typeof makeKey>[2] = {}) =>
  makeKey(servers.db, organizationId, options);

describe.each(named)("%s", (_name, route) => {
  it("answers 401 missing_key without a key, or with an empty one", async () => {
    expectRefused(await call(route, undefined), { status: 401, code: "missing_key" });
    expectRefused(await call(route, ""), { status: 401, code: "missing_key" });
    const bearer = { authorization: `Bearer ${(await key(partner.organizationId)).key}` };
    expectRefused(await call(route, undefined, { headers: bearer }), { status: 401, code: "missing_key" });
  });

  it("answers 401 unknown_key for a key that was never given out", async () => {
    const elsewhere = await createKeyElsewhere();
    expectRefused(await call(route, elsewhere), { status: 401, code: "unknown_key" });
  });

  it("answers 401 missing_scope when the key has only the other scope, and lets it through with the right one", async () => {
    const other = route.scope === "voucher.read" ? "voucher.redeem" : "voucher.read";
    const lacking = await key(partner.organizationId, { scopes: [other] });
    const having = await key(partner.organizationId, { scopes: [route.scope] });
    const refused = await call(route, lacking.key);
    expectRefused(refused, { status: 401, code: "missing_scope" });
    if (refused.body !== null) expect(refused.body.error).toContain(route.scope);
    expect(isThrough(await call(route, having.key))).toBe(true);
  });

  it("answers 403 key_without_organization for a key that is bound to none", async () => {
    const unbound = await key(null);
    expectRefused(await call(route, unbound.key), { status: 403, code: "key_without_organization" });
  });

  it("answers 403 address_not_allowed from an address outside the key's allowlist", async () => {
    const bound = await key(partner.organizationId, { allowIps: ["192.0.2.0/24", "2001:db8::/32"] });
    expectRefused(await call(route, bound.key), { status: 403, code: "address_not_allowed" });
  });

  it("checks key, organization, address and scope in this order, and all of them before the request's shape", async () => {
    const wrongShape = { api, body: "not JSON at all" };
    const everythingWrong = await key(null, { allowIps: ["192.0.2.1"], scopes: [otherScope(route)] });
    expectRefused(await call(route, `${everythingWrong.key}x`, wrongShape), { status: 401, code: "unknown_key" });
    expectRefused(await call(route, everythingWrong.key, wrongShape), {
      status: 403,
      code: "key_without_organization",
    });
    const boundButWrong = await key(partner.organizationId, { allowIps: ["192.0.2.1"], scopes: [otherScope(route)] });
    expectRefused(await call(route, boundButWrong.key, wrongShape), { status: 403, code: "address_not_allowed" });
    const scopeWrong = await key(partner.organizationId, { scopes: [otherScope(route)] });
    expectRefused(await call(route, scopeWrong.key, wrongShape), { status: 401, code: "missing_scope" });
  });
});

function otherScope(route: PartnerRoute): "voucher.read" | "voucher.redeem" {
  return route.scope === "voucher.read" ? "voucher.redeem" : "voucher.read";
}

/** A well-formed key with a fitting checksum that the database does not know. */
async function createKeyElsewhere(): Promise<string> {
  const made = await key(partner.organizationId);
  await servers.db.query("DELETE FROM api_key_secrets WHERE key_id = $1", [made.id]);
  return made.key;
}

describe("an API key", () => {
  it("works from the moment it is made, and only as a whole", async () => {
    const { code } = await issueVoucher(servers.db, partner);
    const made = await key(partner.organizationId);
    expect(made.key).toMatch(/^pvk_[0-9A-HJKMNP-TV-Z]{47}$/);
    expect((await partnerClient(api.url, made.key).lookUp(code)).status).toBe(200);
    const last = made.key.at(-1) === "0" ? "1" : "0";
    const mistyped = [
      made.key.slice(0, -1) + last,
      `pvk_${made.key.at(4) === "0" ? "1" : "0"}${made.key.slice(5)}`,
      made.key.slice(0, -1),
      `${made.key}0`,
      made.key.toLowerCase(),
      made.key.slice(4),
      `Bearer ${made.key}`,
      made.id,
      "pvk_",
      "x".repeat(4_000),
      `${made.key}, ${made.key}`,
      "' OR ''='",
    ];
    for (const secret of mistyped) {
      expectRefused(await call(lookUp, secret), { status: 401, code: "unknown_key" });
    }
  });

  it("is stored as nothing that it could be recovered from", async () => {
    const made = await key(partner.organizationId);
    const dump = JSON.stringify(await dumpRows(servers.db, ["api_keys", "api_key_secrets"]));
    expect(dump).toContain(made.id);
    expect(dump).not.toContain(made.key);
    expect(dump).not.toContain(made.key.slice(4, -7));
    expect(dump).not.toContain(Buffer.from(made.key).toString("hex"));
  });

  it("is told apart from an unknown one by nothing once it has expired", async () => {
    const expired = await key(partner.organizationId, { expiresAt: new Date(Date.now() - 1) });
    const [gone, unknown] = [await call(lookUp, expired.key), await call(lookUp, await createKeyElsewhere())];
    expectRefused(gone, { status: 401, code: "unknown_key" });
    expect(gone.body.error).toBe(unknown.body.error);
    expect([...gone.headers.keys()]).toEqual([...unknown.headers.keys()]);
  });

  it("stops working at its end, not half a second later, though it was used just before", async () => {
    const expiresAt = new Date(Date.now() + 1_200);
    const short = await key(partner.organizationId, { expiresAt });
    expect(isThrough(await call(lookUp, short.key))).toBe(true);
    // Its own clock is the database's; on one machine the two agree to a few milliseconds.
    expect(await lastCallThrough(short.key)).toBeLessThanOrEqual(expiresAt.getTime() + 50);
  });

  it("stops working within a second of being revoked, on every process, for good", async () => {
    const made = await key(partner.organizationId);
    for (const each of [api, behindProxy]) expect(isThrough(await call(lookUp, made.key, { api: each }))).toBe(true);
    await endKey(provisioning(servers.db), made.id);
    const revokedAt = Date.now();
    for (const each of [api, behindProxy]) {
      expect(await lastCallThrough(made.key, each)).toBeLessThan(revokedAt + 1_000);
    }
    expectRefused(await call(lookUp, made.key), { status: 401, code: "unknown_key" });
    // A rotated secret of a revoked key does not exist.
    await expect(rotateKey(provisioning(servers.db), made.id, 0)).rejects.toMatchObject({ code: "not_found" });
  });

  it("keeps its id through a rotation: both secrets are the same holder while the grace lasts", async () => {
    const made = await key(partner.organizationId);
    const { code } = await issueVoucher(servers.db, partner);
    const held = (await partnerClient(api.url, made.key).reserve(code)).body;
    const rotated = await rotateKey(provisioning(servers.db), made.id, 60_000);
    expect(rotated).toEqual({ id: made.id, key: expect.stringMatching(/^pvk_/), oldSecretsUntil: expect.any(Date) });
    expect(rotated.key).not.toBe(made.key);
    for (const secret of [rotated.key, made.key]) {
      const client = partnerClient(api.url, secret);
      const { status, body } = await client.reserve(code);
      expect({ status, body }).toEqual({ status: 200, body: held });
      expect((await client.lookUp(code)).body.reservation).toMatchObject({ ticket: held.ticket, heldByCaller: true });
    }
  });

  it("loses its old secret at once when it is rotated without grace", async () => {
    const made = await key(partner.organizationId);
    const rotated = await rotateKey(provisioning(servers.db), made.id, 0);
    expectRefused(await call(lookUp, made.key), { status: 401, code: "unknown_key" });
    expect(isThrough(await call(lookUp, rotated.key))).toBe(true);
  });

  it("keeps no secret from before a rotation for longer than that one's grace, however it was rotated earlier", async () => {
    const made = await key(partner.organizationId);
    const ctx = provisioning(servers.db);
    const [second, third] = [await rotateKey(ctx, made.id, 86_400_000), await rotateKey(ctx, made.id, 86_400_000)];
    const last = await rotateKey(ctx, made.id, 0);
    for (const secret of [made.key, second.key, third.key]) {
      expectRefused(await call(lookUp, secret), { status: 401, code: "unknown_key" });
    }
    expect(isThrough(await call(lookUp, last.key))).toBe(true);
    expect(await selectKeys(servers.db, partner.organizationId)).toContainEqual(
      expect.objectContaining({ id: made.id, oldSecretsUntil: null }),
    );
  });

  it("does not let a longer grace give more time to a secret that has an end", async () => {
    const made = await key(partner.organizationId);
    const ctx = provisioning(servers.db);
    const first = await rotateKey(ctx, made.id, 1_000);
    const second = await rotateKey(ctx, made.id, 60_000);
    expectRefused(
      await until(async () => {
        const reply = await call(lookUp, made.key);
        return reply.status === 401 ? reply : null;
      }),
      { status: 401, code: "unknown_key" },
    );
    expect(isThrough(await call(lookUp, first.key))).toBe(true);
    expect(await selectKeys(servers.db, partner.organizationId)).toContainEqual(
      expect.objectContaining({ id: made.id, oldSecretsUntil: second.oldSecretsUntil }),
    );
  });

  it("loses both secrets when it is revoked during the grace", async () => {
    const made = await key(partner.organizationId);
    const rotated = await rotateKey(provisioning(servers.db), made.id, 60_000);
    await endKey(provisioning(servers.db), made.id);
    for (const secret of [made.key, rotated.key]) {
      expectRefused(await call(lookUp, secret), { status: 401, code: "unknown_key" });
    }
  });

  it("of one organization sees no voucher of another, and each has its own reservations", async () => {
    const other = await makePartner(servers.db);
    const [ours, theirs] = [await key(partner.organizationId), await key(other.organizationId)];
    const { code } = await issueVoucher(servers.db, other);
    expect((await partnerClient(api.url, theirs.key).reserve(code)).status).toBe(200);
    expect((await partnerClient(api.url, ours.key).lookUp(code)).status).toBe(404);
    expect((await partnerClient(api.url, ours.key).reserve(code)).status).toBe(404);
  });
});

describe("an API key's allowlist", () => {
  it.each([
    ["the address itself", ["127.0.0.1"]],
    ["a network around it", ["127.0.0.0/8"]],
    ["one entry of several", ["192.0.2.0/24", "2001:db8::/32", "127.0.0.1/32"]],
    ["everything in IPv4", ["0.0.0.0/0"]],
  ])("lets callers through from %s", async (_what, allowIps) => {
    const made = await key(partner.organizationId, { allowIps });
    expect(isThrough(await call(lookUp, made.key))).toBe(true);
  });

  it.each([
    ["another address", ["127.0.0.2"]],
    ["a network beside it", ["126.0.0.0/8"]],
    ["IPv6 only", ["2001:db8::/32", "::1"]],
  ])("refuses callers when it contains %s", async (_what, allowIps) => {
    const made = await key(partner.organizationId, { allowIps });
    expectRefused(await call(lookUp, made.key), { status: 403, code: "address_not_allowed" });
  });

  it("does not believe X-Forwarded-For, or any header like it, when no proxy is trusted", async () => {
    const inside = await key(partner.organizationId, { allowIps: ["198.51.100.7"] });
    const here = await key(partner.organizationId, { allowIps: ["127.0.0.1"] });
    const spoofed: Record<string, string>[] = [
      { "x-forwarded-for": "198.51.100.7" },
      { "x-forwarded-for": "198.51.100.7, 127.0.0.1" },
      { "x-real-ip": "198.51.100.7" },
      { forwarded: "for=198.51.100.7" },
      { "x-client-ip": "198.51.100.7", "true-client-ip": "198.51.100.7", "cf-connecting-ip": "198.51.100.7" },
    ];
    for (const headers of spoofed) {
      expectRefused(await call(lookUp, inside.key, { headers }), { status: 403, code: "address_not_allowed" });
      expect(isThrough(await call(lookUp, here.key, { headers }))).toBe(true);
    }
  });

  it.each([
    ["the one address that is there", "198.51.100.7"],
    ["the last address that is no trusted proxy", "203.0.113.9, 198.51.100.7, 10.1.2.3"],
    ["an address with white space around it", "  198.51.100.7  "],
    ["an address beside empty list elements, which count for nothing (RFC 9110, 5.6.1)", ",198.51.100.7,"],
    ["an IPv4 address in IPv6 notation", "::ffff:198.51.100.7"],
    ["an IPv4 address in IPv6 notation and hexadecimal", "::FFFF:c633:6407"],
    ["a proxy in IPv6 notation after it", "198.51.100.7, ::ffff:10.1.2.3"],
    ["an address with a port", "198.51.100.7:51234"],
    ["a bracketed address", "[2001:db8::1]"],
    ["a bracketed address with a port", "[2001:db8::1]:51234"],
    ["an address and a trusted proxy with ports", "203.0.113.9, 198.51.100.7:51234, 10.1.2.3:443"],
  ])("believes a trusted proxy: %s", async (_what, forwarded) => {
    const inside = await key(partner.organizationId, { allowIps: ["198.51.100.0/24", "2001:db8::/32"] });
    const headers = { "x-forwarded-for": forwarded };
    expect(isThrough(await call(lookUp, inside.key, { api: behindProxy, headers }))).toBe(true);
  });

  it.each([
    ["an allowed address that the caller put in front", "198.51.100.7, 203.0.113.9"],
    ["an allowed address that an untrusted hop put in front", "198.51.100.7, 203.0.113.9, 10.1.2.3"],
    ["an allowed address that an untrusted hop in IPv6 notation put in front", "198.51.100.7, ::ffff:203.0.113.9"],
    ["an allowed address in another embedding than the mapped one", "::198.51.100.7"],
    ["no address", "unknown"],
    ["another address with a port", "203.0.113.9:51234"],
    [
      "an allowed address with a port that an untrusted hop put in front",
      "198.51.100.7:443, 203.0.113.9:51234, 10.1.2.3:443",
    ],
    ["an address with more than a port", "198.51.100.7:443:443"],
    ["an IPv4 address in brackets", "[198.51.100.7]"],
    ["nonsense", "'; DROP TABLE api_keys; --"],
    ["nothing", ""],
    ["an IPv6 address with a zone", "fe80::1%eth0"],
  ])("cannot be bypassed through a trusted proxy by %s", async (_what, forwarded) => {
    const inside = await key(partner.organizationId, { allowIps: ["198.51.100.0/24", "2001:db8::/32"] });
    const headers = { "x-forwarded-for": forwarded };
    expectRefused(await call(lookUp, inside.key, { api: behindProxy, headers }), {
      status: 403,
      code: "address_not_allowed",
    });
  });

  it("of IPv4 addresses in IPv6 notation is one of IPv4 addresses", async () => {
    const mapped = await key(partner.organizationId, { allowIps: ["::ffff:198.51.100.0/120"] });
    const from = (forwarded: string) =>
      call(lookUp, mapped.key, { api: behindProxy, headers: { "x-forwarded-for": forwarded } });
    expect(isThrough(await from("198.51.100.7"))).toBe(true);
    expect(isThrough(await from("::ffff:198.51.100.7"))).toBe(true);
    expectRefused(await from("198.51.101.7"), { status: 403, code: "address_not_allowed" });
  });

  it("believes the last proxy that is trusted, and no header sent twice gets around it", async () => {
    const inside = await key(partner.organizationId, { allowIps: ["198.51.100.0/24"] });
    const ask = (...forwarded: string[]) => {
      const headers = new Headers({ "x-api-key": inside.key });
      for (const value of forwarded) headers.append("x-forwarded-for", value);
      return fetch(`${behindProxy.url}/partner/vouchers/7Q4K-9MZX-2HTB-W8RC`, { headers });
    };
    expect((await ask("203.0.113.9", "198.51.100.7")).status).toBe(404);
    expect((await ask("198.51.100.7", "203.0.113.9")).status).toBe(403);
  });

  it("takes effect within a second of being changed", async () => {
    const made = await createKey(provisioning(servers.db), {
      organizationId: partner.organizationId,
      label: null,
      scopes: ["voucher.read"],
      allowIps: [],
      expiresAt: null,
    });
    expect(isThrough(await call(lookUp, made.key))).toBe(true);
    await servers.db.query("UPDATE api_keys SET allow_ips = '{192.0.2.0/24}' WHERE id = $1", [made.id]);
    const changedAt = Date.now();
    expect(await lastCallThrough(made.key)).toBeLessThan(changedAt + 1_000);
    expectRefused(await call(lookUp, made.key), { status: 403, code: "address_not_allowed" });
  });
});
