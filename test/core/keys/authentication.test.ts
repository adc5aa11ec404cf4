import { expect, it } from "vitest";
import { revokeApiKey } from "../../../src/acts/key/revoke.ts";
import { rotateKey } from "../../../src/acts/key/rotate.ts";
import type { Scope } from "../../../src/core/keys/api-keys.ts";
import { selectKeys } from "../../../src/core/keys/db/api-keys.ts";
import { partnerClient, type Reply, send } from "../../support/client.ts";
import { dumpRows } from "../../support/row-dump.ts";
import type { TestApi } from "../../support/service.ts";
import { issueVoucher, makeKey, provisioning } from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

const service = useService({ apis: [{}, { TRUST_PROXY: "127.0.0.0/8, 10.0.0.0/8, ::1" }], workers: [] });
const { api, servers, partner } = service;

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

const lookUp = ROUTES[0] as PartnerRoute;

// reference-calls.test.ts provokes each of these refusals once for each scope.
it.each(
  ROUTES,
)("$method $path checks key, organization, address and scope in this order, then the request", async (route) => {
  const { organizationId } = partner;
  const allowIps = ["192.0.2.0/24", "2001:db8::/32"];
  const scopes: Scope[] = [route.scope === "voucher.read" ? "voucher.redeem" : "voucher.read"];
  const refuse = async (secret: string, status: number, code: string) =>
    expectRefused(await call(route, secret, { body: "not JSON at all" }), { status, code });
  await refuse(await createKeyElsewhere(), 401, "unknown_key");
  await refuse((await key(null, { allowIps, scopes })).key, 403, "key_without_organization");
  await refuse((await key(organizationId, { allowIps, scopes })).key, 403, "address_not_allowed");
  await refuse((await key(organizationId, { scopes })).key, 401, "missing_scope");
  const enough = await key(organizationId, { scopes: [route.scope] });
  expect(isThrough(await call(route, enough.key))).toBe(true);
  const bearer = { authorization: `Bearer ${enough.key}` };
  expectRefused(await call(route, undefined, { headers: bearer, body: "{" }), { status: 401, code: "missing_key" });
});

it("a new API key works at once, but no changed form of it does, and the database does not store it", async () => {
  const { code } = await issueVoucher(servers.db, partner);
  const made = await key(partner.organizationId);
  const dump = JSON.stringify(await dumpRows(servers.db, ["api_keys", "api_key_secrets"]));
  expect(dump).toContain(made.id);
  for (const part of [made.key.slice(4, -7), Buffer.from(made.key).toString("hex")]) expect(dump).not.toContain(part);
  expect(made.key).toMatch(/^pvk_[0-9A-HJKMNP-TV-Z]{47}$/);
  expect((await partnerClient(api.url, made.key).lookUp(code)).status).toBe(200);
  const last = made.key.at(-1) === "0" ? "1" : "0";
  for (const secret of [made.key.slice(0, -1) + last, made.key.toLowerCase(), made.id, "x".repeat(4_000)]) {
    expectRefused(await call(lookUp, secret), { status: 401, code: "unknown_key" });
  }
});

it("an expired API key gets the same response as an unknown key", async () => {
  const expired = await key(partner.organizationId, { expiresAt: new Date(Date.now() - 1) });
  const [gone, unknown] = [await call(lookUp, expired.key), await call(lookUp, await createKeyElsewhere())];
  expectRefused(gone, { status: 401, code: "unknown_key" });
  expect(gone.body.error).toBe(unknown.body.error);
  expect([...gone.headers.keys()]).toEqual([...unknown.headers.keys()]);
});

it("an API key stops working at its end, even right after a call", async () => {
  // On a busy machine, the first answer may come after the key's end. Then the test uses another key.
  const { expiresAt, short, first } = await until(async () => {
    const expiresAt = new Date(Date.now() + 1_200);
    const short = await key(partner.organizationId, { expiresAt });
    const first = await call(lookUp, short.key);
    return Date.now() < expiresAt.getTime() ? { expiresAt, short, first } : null;
  });
  expect(isThrough(first)).toBe(true);
  // The service uses the database's clock, which differs from this process's clock by milliseconds.
  expect(await lastCallThrough(short.key)).toBeLessThanOrEqual(expiresAt.getTime() + 50);
});

/** An API that trusts X-Forwarded-For from callers on this machine. */
const behindProxy = service.apis[1];

it("every process refuses a revoked API key and its old secret within a second", async () => {
  const made = await key(partner.organizationId);
  for (const each of [api, behindProxy]) expect(isThrough(await call(lookUp, made.key, { api: each }))).toBe(true);
  const rotated = await rotateKey.run(provisioning(servers.db), made.id, { grace: 60_000 });
  await revokeApiKey.run(provisioning(servers.db), made.id, {});
  const revokedAt = Date.now();
  for (const each of [api, behindProxy]) {
    expect(await lastCallThrough(made.key, each)).toBeLessThan(revokedAt + 1_000);
  }
  for (const secret of [made.key, rotated.key])
    expectRefused(await call(lookUp, secret), { status: 401, code: "unknown_key" });
  // A revoked key cannot be rotated.
  await expect(rotateKey.run(provisioning(servers.db), made.id, { grace: 0 })).rejects.toMatchObject({
    code: "not_found",
  });
});

it("both secrets of a rotated API key act as the same reservation holder during the grace period", async () => {
  const made = await key(partner.organizationId);
  const { code } = await issueVoucher(servers.db, partner);
  const held = (await partnerClient(api.url, made.key).reserve(code)).body;
  const rotated = await rotateKey.run(provisioning(servers.db), made.id, { grace: 60_000 });
  expect(rotated).toEqual({ id: made.id, key: expect.stringMatching(/^pvk_/), oldSecretsUntil: expect.any(Date) });
  expect(rotated.key).not.toBe(made.key);
  for (const secret of [rotated.key, made.key]) {
    const client = partnerClient(api.url, secret);
    const { status, body } = await client.reserve(code);
    expect({ status, body }).toEqual({ status: 200, body: held });
    expect((await client.lookUp(code)).body.reservation).toMatchObject({ ticket: held.ticket, heldByCaller: true });
  }
});

it("all older secrets of an API key become invalid when the last rotation's grace period ends", async () => {
  const made = await key(partner.organizationId);
  const ctx = provisioning(servers.db);
  const [second, third] = [
    await rotateKey.run(ctx, made.id, { grace: 86_400_000 }),
    await rotateKey.run(ctx, made.id, { grace: 86_400_000 }),
  ];
  const last = await rotateKey.run(ctx, made.id, { grace: 0 });
  for (const secret of [made.key, second.key, third.key]) {
    expectRefused(await call(lookUp, secret), { status: 401, code: "unknown_key" });
  }
  expect(isThrough(await call(lookUp, last.key))).toBe(true);
  expect(await selectKeys(servers.db, partner.organizationId)).toContainEqual(
    expect.objectContaining({ id: made.id, oldSecretsUntil: null }),
  );
});

it("a rotation with a longer grace period does not extend a secret that already has an end", async () => {
  const made = await key(partner.organizationId);
  const ctx = provisioning(servers.db);
  const first = await rotateKey.run(ctx, made.id, { grace: 1_000 });
  const second = await rotateKey.run(ctx, made.id, { grace: 60_000 });
  expect(await lastCallThrough(made.key)).toBeLessThanOrEqual(Number(first.oldSecretsUntil) + 50);
  expect(isThrough(await call(lookUp, first.key))).toBe(true);
  expect(await selectKeys(servers.db, partner.organizationId)).toContainEqual(
    expect.objectContaining({ id: made.id, oldSecretsUntil: second.oldSecretsUntil }),
  );
});

it("an allowlist ignores X-Forwarded-For and similar headers when no proxy is trusted", async () => {
  const inside = await key(partner.organizationId, { allowIps: ["198.51.100.7"] });
  const here = await key(partner.organizationId, { allowIps: ["127.0.0.1"] });
  const names = ["x-forwarded-for", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip"];
  const named = Object.fromEntries(names.map((name) => [name, "198.51.100.7"]));
  const headers = { forwarded: "for=198.51.100.7", ...named };
  expectRefused(await call(lookUp, inside.key, { headers }), { status: 403, code: "address_not_allowed" });
  expect(isThrough(await call(lookUp, here.key, { headers }))).toBe(true);
});

// caller-network.test.ts and api-keys.test.ts test the other spellings of an address.
it("an allowlist uses the last untrusted address in a trusted proxy's X-Forwarded-For", async () => {
  const inside = await key(partner.organizationId, { allowIps: ["::ffff:198.51.100.0/120", "2001:db8::/32"] });
  const ask = (forwarded: string) =>
    call(lookUp, inside.key, { api: behindProxy, headers: { "x-forwarded-for": forwarded } });
  for (const forwarded of [
    "198.51.100.7",
    "203.0.113.9, 198.51.100.7, 10.1.2.3",
    // A list with empty elements (RFC 9110, 5.6.1).
    " ,198.51.100.7 ,",
    "::FFFF:c633:6407",
    "198.51.100.7, ::ffff:10.1.2.3",
    "[2001:db8::1]:51234",
    "203.0.113.9, 198.51.100.7:51234, 10.1.2.3:443",
  ]) {
    expect(isThrough(await ask(forwarded)), forwarded).toBe(true);
  }
  const elsewhere = ["198.51.100.7, 203.0.113.9", "198.51.100.7, ::ffff:203.0.113.9", "::198.51.100.7"];
  const hop = "198.51.100.7:443, 203.0.113.9:51234, 10.1.2.3:443";
  for (const forwarded of [...elsewhere, hop, "198.51.100.7:443:443", "[198.51.100.7]", "unknown", "", "fe80::1%eth0"])
    expectRefused(await ask(forwarded), { status: 403, code: "address_not_allowed" });
});

it("an allowlist uses the second of two X-Forwarded-For headers", async () => {
  const inside = await key(partner.organizationId, { allowIps: ["198.51.100.0/24"] });
  const ask = (...forwarded: string[]) => {
    const headers = new Headers({ "x-api-key": inside.key });
    for (const value of forwarded) headers.append("x-forwarded-for", value);
    return fetch(`${behindProxy.url}/partner/vouchers/7Q4K-9MZX-2HTB-W8RC`, { headers });
  };
  expect((await ask("203.0.113.9", "198.51.100.7")).status).toBe(404);
  expect((await ask("198.51.100.7", "203.0.113.9")).status).toBe(403);
});

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

/** Expects a refusal without data of the voucher. HEAD responses have no body to check. */
function expectRefused({ status, body }: Reply, expected: { status: number; code: string }): void {
  expect(status).toBe(expected.status);
  if (body === null) return;
  expect(body).toStrictEqual({
    error: expect.stringMatching(/^[A-Z].*\.$/),
    code: expected.code,
    requestId: expect.any(String),
  });
}

/** Whether a request passed authentication: its status may be any other than 401 and 403. */
function isThrough({ status }: Reply): boolean {
  return status !== 401 && status !== 403;
}

/** Calls the API until it refuses the key. Returns the time of the last successful call, or 0. */
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

/** Makes a well-formed key with a valid checksum that the database does not know. */
async function createKeyElsewhere(): Promise<string> {
  const made = await key(partner.organizationId);
  await servers.db.query("DELETE FROM api_key_secrets WHERE key_id = $1", [made.id]);
  return made.key;
}
