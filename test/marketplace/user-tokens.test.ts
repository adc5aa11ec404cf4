import { createHmac } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { exportSPKI, importJWK } from "jose";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { type Telling, UserAuthenticator } from "../../src/core/keys/authenticate-user.ts";
import { mintUserToken, useLocalUserKeys } from "../../src/local/user-keys.ts";
import { AppError } from "../../src/platform/api/errors.ts";
import { DatabaseClock } from "../../src/platform/db/database-clock.ts";
import { type Reply, send } from "../support/client.ts";
import {
  makeOffer,
  makeReferral,
  marketClient,
  type Offered,
  outcome,
  readAcquisitions,
} from "../support/marketplace.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { endService, startApi, type TestApi } from "../support/service.ts";
import { findSteadyPort } from "../support/steady-port.ts";
import type { TestPartner } from "../support/supply.ts";
import {
  type IssuerKey,
  type KeysFile,
  type KeysServer,
  makeIssuerKey,
  openKeysServer,
  secondsFromNow,
  signClaims,
  signUser,
  TELLS_NOTHING,
  writeKeysFile,
} from "../support/user-tokens.ts";

const ISSUER = "https://login.shop.test/";
const AUDIENCE = "vouchers";

let servers: TestServers;
let key: IssuerKey;
let rsa: IssuerKey;
/** A key of an algorithm that the service does not accept. */
let unlisted: IssuerKey;
let keysFile: KeysFile;
/** An API that checks only the signature and times of tokens. */
let api: TestApi;
/** An API that also checks the issuer and the audience. */
let strict: TestApi;
/** An API without configured keys. */
let keyless: TestApi;
let offer: TestPartner & Offered & { linkCode: string };

beforeAll(startApis);
afterAll(async () => {
  expect(
    await readAcquisitions(
      servers.db,
      offer.vouchers.map(({ id }) => id),
    ),
  ).toEqual([]);
  await endService(servers);
  keysFile.remove();
});

/** Calls that require a user token. Their body is invalid, so they never acquire a voucher. */
const CALLS: [name: string, path: () => string, body: unknown][] = [
  ["POST /marketplace/listings/{id}/buy", () => `/marketplace/listings/${offer.listingId}/buy`, {}],
  ["POST /products/{id}/buy", () => `/products/${offer.productId}/buy`, {}],
  ["POST /products/{id}/claim", () => `/products/${offer.productId}/claim`, []],
  ["POST /r/{code}/claim", () => `/r/${offer.linkCode}/claim`, []],
];

describe("a user's token", () => {
  it("a user's token without a key id is verified with each key that fits its algorithm", async () => {
    const made = ["ES256", "ES256", "ES256"].map((alg) => makeIssuerKey(alg));
    const [one, two, stranger] = (await Promise.all(made)) as [IssuerKey, IssuerKey, IssuerKey];
    const file = writeKeysFile(one, two);
    const users = openUsers(file.url);
    const signWithoutKeyId = (by: IssuerKey, exp: number) => signClaims(by, { sub: "user", exp }, { kid: undefined });
    for (const by of [one, two])
      expect(await users.authenticate(await signWithoutKeyId(by, secondsFromNow(60)))).toBe("user");
    for (const token of [signWithoutKeyId(stranger, secondsFromNow(60)), signWithoutKeyId(two, secondsFromNow(-60))])
      await expect(users.authenticate(await token)).rejects.toMatchObject({ code: "invalid_token" });
    file.remove();
  });

  it("a user's token is accepted with each kind of asymmetric algorithm, and Bearer in any letter case", async () => {
    await expectAccepted(api, await signUser(key, "user"));
    await expectAccepted(api, await signUser(rsa, "user"));
    const reply = await call(api, CALLS[0]?.[1]() ?? "", `bEARER   ${await signUser(key, "user")}`, {});
    expect(outcome(reply)).toBe("400 invalid_request");
    for (const alg of ["ES256", "ES384", "ES512", "PS256", "RS512", "EdDSA", "Ed25519"]) {
      const other = await makeIssuerKey(alg);
      const file = writeKeysFile(other, key);
      const users = openUsers(file.url);
      await expect(users.authenticate(await signUser(other, `user of ${alg}`))).resolves.toBe(`user of ${alg}`);
      file.remove();
    }
  });

  it("a call without a user's token after Bearer gets 401 missing_token", async () => {
    await expectRefused(api, null, "missing_token");
    const token = await signUser(key, "user");
    const schemes = [`Basic ${token}`, `Token ${token}`, token, `Bearer ${token} x`, `Bearer${token}`];
    for (const authorization of ["", "Bearer", "Bearer ", ...schemes])
      await expectRefused(api, authorization, "missing_token");
    const path = `/products/${offer.productId}/buy?access_token=${token}`;
    expect(outcome(await call(api, path, null, { access_token: token }))).toBe("401 missing_token");
  });

  it.each<[name: string, make: () => Promise<string> | string]>([
    ["expired a minute ago", () => signUser(key, "user", { exp: secondsFromNow(-60) })],
    ["not valid before a minute from now", () => signUser(key, "user", { nbf: secondsFromNow(60) })],
    ["without exp", () => signClaims(key, { sub: "user" })],
    ["without sub", () => signClaims(key, { exp: secondsFromNow(600) })],
    ["with a sub of 256 characters", () => signUser(key, "x".repeat(256))],
    ["with NUL in its sub", () => signUser(key, "a\u0000b")],
    ["with a number for sub", () => signUser(key, "user", { sub: 7 as unknown as string })],
    ["with text for exp", () => signUser(key, "user", { exp: "later" as unknown as number })],
    [
      "signed by an unknown key, with the id of a known key",
      async () => signUser(await makeIssuerKey("EdDSA", key.kid), "user"),
    ],
    ["signed by a known key, with the id of another known key", () => signClaims(key, validClaims(), { kid: rsa.kid })],
    [
      "with HS256 and the public RSA key in PEM as secret",
      async () =>
        signShared(
          await exportSPKI(
            (await importJWK(rsa.publicJwk, "RS256", { extractable: true })) as Parameters<typeof exportSPKI>[0],
          ),
        ),
    ],
    ["signed by a published key of an algorithm that is not accepted", () => signUser(unlisted, "user")],
    ["with HS256 and no key id", () => signShared("secret", { kid: undefined })],
    [
      "with its own key in the header (jwk)",
      async () => {
        const own = await makeIssuerKey();
        return signClaims(own, validClaims(), { jwk: own.publicJwk, kid: undefined });
      },
    ],
    [
      "with an address of a key set in the header (jku)",
      async () => signClaims(await makeIssuerKey(), validClaims(), { jku: "http://127.0.0.1:9/jwks.json" }),
    ],
    ["with the signature cut off", async () => (await signUser(key, "user")).replace(/\.[^.]*$/, ".")],
  ])("a call gets 401 with a user's token %s", async (_name, make) => {
    await expectRefused(api, `Bearer ${await make()}`, "invalid_token");
  });

  it("a malformed token and a token whose algorithm does not fit its key get 401", async () => {
    const { kid } = key;
    const headers = [
      { alg: "none" },
      { alg: "none", kid },
      { alg: "None", kid },
      { alg: 1, kid },
      { alg: "RS256", kid },
    ];
    for (const header of [
      ...headers,
      { alg: "EdDSA", kid: {} },
      { alg: "EdDSA", kid, crit: ["x"], x: 1 },
      [],
      null,
      "x",
    ]) {
      for (const signature of ["", "AAAA"])
        await expectRefused(api, `Bearer ${encode(header)}.${encode(validClaims())}.${signature}`, "invalid_token");
    }
    for (const token of [
      `${encode({ alg: "EdDSA" })}.${encode(validClaims())}`,
      "a.b.c",
      "a.b.c.d.e",
      "x".repeat(7_000),
    ])
      await expectRefused(api, `Bearer ${token}`, "invalid_token");
  });

  it("a user's token is accepted with a clock difference of a few seconds", async () => {
    await expectAccepted(api, await signUser(key, "user", { exp: secondsFromNow(-3), nbf: secondsFromNow(3) }));
  });

  it("a user's token needs the configured issuer and audience", async () => {
    const right = { iss: ISSUER, aud: AUDIENCE };
    await expectAccepted(strict, await signUser(key, "user", right));
    await expectAccepted(strict, await signUser(key, "user", { ...right, aud: ["other", AUDIENCE] }));
    const others = [{ iss: `${ISSUER}x` }, { aud: "other" }, { aud: [] }].map((other) => ({ ...right, ...other }));
    for (const wrong of [{}, { iss: ISSUER }, { aud: AUDIENCE }, ...others]) {
      await expectRefused(strict, `Bearer ${await signUser(key, "user", wrong)}`, "invalid_token");
    }
  });

  it("a user's token may have any configured issuer and audience, and no other", async () => {
    const clock = new DatabaseClock(() => performance.now());
    clock.observe({ now: new Date(), trustedAt: null, closedUntil: new Date(0) });
    const rules = { jwksUrl: keysFile.url, issuer: ["https://a.test", ISSUER], audience: ["tills", AUDIENCE] };
    const users = new UserAuthenticator(rules, clock, TELLS_NOTHING);
    const reasonOf = async (claims: object) =>
      users
        .authenticate(await signUser(key, "user", { iss: ISSUER, aud: AUDIENCE, ...claims }))
        .catch((error: AppError) => (error.cause as Error).message);
    expect(await reasonOf({})).toBe("user");
    expect(await reasonOf({ iss: "https://a.test", aud: ["x", "tills"] })).toBe("user");
    expect(await reasonOf({ iss: "https://login.shop.test" })).toBe(
      `its iss is "https://login.shop.test", and AUTH_ISSUER is https://a.test,${ISSUER}`,
    );
    expect(await reasonOf({ aud: undefined })).toMatch(/missing required "aud" claim|its aud is null/);
    expect(await reasonOf({ sub: 7 })).toMatch(/^its sub is no text of 1 to 255 characters/);
    expect(await reasonOf({ exp: secondsFromNow(-60) })).toMatch(/"exp" claim timestamp check failed/);
  });

  it("a user's token is refused if no keys are configured, even a token of npm start", async () => {
    await expectRefused(keyless, `Bearer ${await signUser(key, "user")}`, "invalid_token");
    const directory = mkdtempSync(join(tmpdir(), "voucher-user-keys-"));
    await expectRefused(keyless, `Bearer ${await mintUserToken(directory, "user", 60_000)}`, "invalid_token");
    rmSync(directory, { recursive: true });
    await expectRefused(keyless, null, "missing_token");
    expect((await marketClient(keyless.url, null).listings()).status).toBe(200);
  });
});

function fakeToken(kid: string, sub: string): string {
  return `${encode({ alg: "EdDSA", kid })}.${encode({ sub, exp: secondsFromNow(3_600) })}.${"A".repeat(86)}`;
}

describe("fetching keys for users' tokens by HTTP", () => {
  const COOLDOWN_MS = 10_000;
  const CACHED_MS = 600_000;
  /** How long the service accepts a verified token without another check of its signature. Milliseconds. */
  const TRUSTED_MS = 5_000;
  let server: KeysServer;
  let users: UserAuthenticator;

  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ["Date", "performance"] });
    server = await openKeysServer(key);
    users = openUsers(server.url);
  });

  afterEach(async () => {
    vi.useRealTimers();
    await server.close();
  });

  const advance = (ms: number) => void vi.advanceTimersByTime(ms);
  const codeOf = (token: string) =>
    users.authenticate(token).then(
      () => "accepted",
      (error) => (error instanceof AppError ? error.code : error),
    );

  it("the service fetches keys for users' tokens once for many concurrent and later tokens", async () => {
    const token = await signUser(key, "user");
    const all = await Promise.all(Array.from({ length: 20 }, () => users.authenticate(token)));
    expect(new Set(all)).toEqual(new Set(["user"]));
    for (let i = 0; i < 20; i++) await users.authenticate(token);
    advance(CACHED_MS - TRUSTED_MS - 1_000);
    expect(await codeOf(await signUser(key, "user"))).toBe("accepted");
    expect(server.fetches).toBe(1);
  });

  it("an unknown key id in a user's token makes the service fetch keys again, once per cooldown", async () => {
    expect(await codeOf(await signUser(key, "user"))).toBe("accepted");
    const next = await makeIssuerKey();
    server.publish(key, next);
    for (let i = 0; i < 20; i++) expect(await codeOf(await signUser(next, "user"))).toBe("invalid_token");
    expect(server.fetches).toBe(1);
    advance(COOLDOWN_MS + 1);
    const tokens = await Promise.all(Array.from({ length: 20 }, () => signUser(next, "user")));
    expect(new Set(await Promise.all(tokens.map(codeOf)))).toEqual(new Set(["accepted"]));
    expect(await codeOf(await signUser(key, "user"))).toBe("accepted");
    expect(server.fetches).toBe(2);
  });

  it("fetching keys and verifying users' tokens does not use the host's clock", async () => {
    const [ended = "", valid = ""] = await Promise.all(
      [-50, 30].map((minutes) => signClaims(key, { sub: "user", exp: secondsFromNow(minutes * 60) })),
    );
    expect(await codeOf(valid)).toBe("accepted");
    for (const hours of [-2, 2]) {
      vi.setSystemTime(Date.now() + hours * 3_600_000);
      advance(CACHED_MS + 1);
      expect([await codeOf(ended), await codeOf(valid)]).toEqual(["invalid_token", "accepted"]);
      vi.setSystemTime(Date.now() - hours * 3_600_000);
    }
    expect(server.fetches).toBe(3);
  });

  it("keys that are no longer published verify no user's token after ten minutes", async () => {
    const token = await signUser(key, "user", { exp: secondsFromNow(86_400) });
    expect(await codeOf(await signUser(key, "another user"))).toBe("accepted");
    const next = await makeIssuerKey();
    server.publish(next);
    // Uses the token halfway between the tests' checks. From here on, the service verifies it every five seconds, so no
    // result stays cached beyond the tenth minute.
    advance(TRUSTED_MS / 2);
    expect(await codeOf(token)).toBe("accepted");
    for (let passedMs = TRUSTED_MS / 2; passedMs < CACHED_MS; passedMs += TRUSTED_MS / 10) {
      await codeOf(token);
      advance(TRUSTED_MS / 10);
    }
    advance(1);
    expect(await codeOf(token)).toBe("invalid_token");
    expect(await codeOf(await signUser(key, "user"))).toBe("invalid_token");
    expect(await codeOf(await signUser(next, "user"))).toBe("accepted");
  });

  it("a user's token is verified at most every five seconds, and is refused once it has expired", async () => {
    const verified = vi.spyOn(crypto.subtle, "verify");
    const token = await signUser(key, "user", { exp: secondsFromNow(12) });
    for (let i = 0; i < 5; i++) expect(await codeOf(token)).toBe("accepted");
    expect(verified).toHaveBeenCalledTimes(1);
    advance(TRUSTED_MS);
    expect(await codeOf(token)).toBe("accepted");
    expect(verified).toHaveBeenCalledTimes(2);
    // The service tolerates clocks that differ by 10 seconds, so it accepts the token for 22 seconds.
    advance(16_000);
    expect(await codeOf(token)).toBe("accepted");
    advance(1_000);
    expect(await codeOf(token)).toBe("invalid_token");
    verified.mockRestore();
  });

  it("the ten thousand users' tokens that were verified last are not verified again", async () => {
    const verified = vi.spyOn(crypto.subtle, "verify").mockResolvedValue(true);
    const tokens = Array.from({ length: 10_001 }, (_, n) => fakeToken(key.kid, `user-${n}`));
    for (const token of tokens) await users.authenticate(token);
    verified.mockClear();
    for (const token of [tokens[1], tokens[10_000]]) await users.authenticate(token ?? "");
    expect(verified).not.toHaveBeenCalled();
    await users.authenticate(tokens[0] ?? "");
    expect(verified).toHaveBeenCalledTimes(1);
    verified.mockRestore();
  });

  it("fetched keys for users' tokens stay in use while their URL fails, and the failure is logged once", async () => {
    const [warnings, reports]: [unknown[], unknown[]] = [[], []];
    const log = { warn: (...told: unknown[]) => void warnings.push(told[1]) };
    users = openUsers(server.url, { log, reportToken: (...told) => void reports.push(told) });
    expect(await codeOf(await signUser(key, "user"))).toBe("accepted");
    server.answer({ status: 500, body: "" });
    advance(2 * CACHED_MS);
    for (let i = 0; i < 5; i++) expect(await codeOf(await signUser(key, `user ${i}`))).toBe("accepted");
    const sentence = expect.stringMatching(/^The keys of AUTH_JWKS_URL could not/);
    expect([server.fetches, warnings, reports]).toEqual([2, [sentence], [["AUTH_JWKS_URL", sentence]]]);
    const next = await makeIssuerKey();
    expect(await codeOf(await signUser(next, "user"))).toBe("unavailable");
    server.publish(next);
    advance(COOLDOWN_MS + 1);
    expect(await codeOf(await signUser(key, "user"))).toBe("invalid_token");
    expect(await codeOf(await signUser(next, "user"))).toBe("accepted");
  });

  it.each<[name: string, answer: { status: number; body: string } | null]>([
    ["is 500", { status: 500, body: "{}" }],
    ["is not JSON", { status: 200, body: "<html>" }],
    ["is JSON of another kind", { status: 200, body: '{"error":"nope"}' }],
    ["never comes", null],
  ])("users' calls answer unavailable if the response with keys %s, until a fetch succeeds", async (_name, answer) => {
    const token = await signUser(key, "user");
    server.answer(answer);
    expect(await codeOf(token)).toBe("unavailable");
    server.publish(key);
    advance(COOLDOWN_MS + 1);
    expect(await codeOf(await signUser(key, "user"))).toBe("accepted");
  });

  it("a call with a user's token gets 503 while no keys can be fetched, and anonymous calls succeed", async () => {
    vi.useRealTimers();
    const withoutKeys = await startApi(servers, {
      AUTH_JWKS_URL: `http://127.0.0.1:${await findSteadyPort()}/jwks.json`,
    });
    try {
      const token = await signUser(key, "user");
      for (const [, path, body] of CALLS) {
        const reply = await call(withoutKeys, path(), `Bearer ${token}`, body);
        expect({ status: reply.status, code: reply.body.code }).toEqual({ status: 503, code: "unavailable" });
        expect(Number(reply.headers.get("retry-after"))).toBeGreaterThan(0);
      }
      expect(outcome(await marketClient(withoutKeys.url, token).listings())).toBe("503 unavailable");
      expect((await marketClient(withoutKeys.url, null).listings()).status).toBe(200);
      // The API refuses a malformed token without fetching keys.
      expect(outcome(await call(withoutKeys, "/products/x/buy", "Bearer nonsense", {}))).toBe("401 invalid_token");
    } finally {
      await withoutKeys.close();
    }
  });
});

it("a process refuses to start if the file of keys for users' tokens is missing or not JSON", () => {
  const sentence = /^AUTH_JWKS_URL names a file that cannot be read as a JSON Web Key Set$/;
  expect(() => openUsers("file:///nowhere/jwks.json")).toThrow(sentence);
  expect(() => openUsers(import.meta.url)).toThrow(sentence);
});

it("npm start generates keys for users' tokens once, keeps them private, and signs tokens with an end", async () => {
  const directory = mkdtempSync(join(tmpdir(), "voucher-user-keys-"));
  try {
    const url = await useLocalUserKeys(directory);
    const published = readFileSync(fileURLToPath(url), "utf8");
    expect(JSON.parse(published).keys).toHaveLength(1);
    expect(JSON.parse(published).keys[0]).not.toHaveProperty("d");
    expect(statSync(join(directory, "user-key.json")).mode & 0o777).toBe(0o600);
    expect(await useLocalUserKeys(directory)).toBe(url);
    expect(readFileSync(fileURLToPath(url), "utf8")).toBe(published);
    const users = openUsers(url);
    expect(await users.authenticate(await mintUserToken(directory, "Ünal", 60_000))).toBe("Ünal");
    await expect(users.authenticate(await mintUserToken(directory, "user", -60_000))).rejects.toThrow(AppError);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

function call(at: TestApi, path: string, authorization: string | null, body: unknown): Promise<Reply> {
  return send("POST", `${at.url}${path}`, { headers: authorization === null ? {} : { authorization }, body });
}

/** Expects that every user route refuses a token, and that the listings do not treat its caller as anonymous. */
async function expectRefused(at: TestApi, authorization: string | null, code: string): Promise<void> {
  const replies = await Promise.all(CALLS.map(([, path, body]) => call(at, path(), authorization, body)));
  if (authorization !== null) {
    const headers = { authorization };
    replies.push(await send("GET", `${at.url}/marketplace/listings`, { headers }));
    replies.push(await send("GET", `${at.url}/marketplace/listings/${offer.listingId}`, { headers }));
  }
  for (const { status, body, headers } of replies) {
    expect({ status, body }).toEqual({
      status: 401,
      body: { error: expect.stringMatching(/^[A-Z].*\.$/), code, requestId: expect.any(String) },
    });
    expect(headers.get("www-authenticate")).toBe("Bearer");
  }
}

/** Expects that every user route accepts the token and then rejects the invalid body with 400. */
async function expectAccepted(at: TestApi, token: string): Promise<void> {
  for (const [, path, body] of CALLS) {
    const reply = await call(at, path(), `Bearer ${token}`, body);
    expect({ status: reply.status, code: reply.body.code }).toMatchObject({ status: 400 });
  }
  expect((await marketClient(at.url, token).listings()).status).toBe(200);
}

const encode = (value: unknown) =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

function signShared(secret: string | Buffer, header: Record<string, unknown> = {}): string {
  const text = `${encode({ alg: "HS256", typ: "JWT", kid: rsa.kid, ...header })}.${encode(validClaims())}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

/** Checks tokens with the keys at an address, by the current time of the database's clock. */
function openUsers(jwksUrl: string, telling: Telling = TELLS_NOTHING): UserAuthenticator {
  const clock = new DatabaseClock(() => performance.now());
  clock.observe({ now: new Date(), trustedAt: null, closedUntil: new Date(0) });
  return new UserAuthenticator({ jwksUrl, issuer: null, audience: null }, clock, telling);
}

/** Starts an API for each way to check tokens, and makes an offer. */
async function startApis(): Promise<void> {
  servers = await openTestServers();
  key = await makeIssuerKey();
  rsa = await makeIssuerKey("RS256");
  unlisted = await makeIssuerKey("ML-DSA-44");
  keysFile = writeKeysFile(key, rsa, unlisted);
  const known = { AUTH_JWKS_URL: keysFile.url };
  [api, strict, keyless] = await Promise.all([
    startApi(servers, known),
    startApi(servers, { ...known, AUTH_ISSUER: ISSUER, AUTH_AUDIENCE: AUDIENCE }),
    startApi(servers),
  ]);
  const made = await makeOffer(servers.db, 1);
  offer = { ...made, linkCode: (await makeReferral(servers.db, made)).code };
}

function validClaims() {
  return { sub: "user", exp: secondsFromNow(600) };
}
