import pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { selectAuditEntries } from "../../src/acts/db/audit-entries.ts";
import { revokeOperator } from "../../src/acts/operator/revoke.ts";
import { rotateOperator } from "../../src/acts/operator/rotate.ts";
import { tellSignIns } from "../../src/open/tell-sign-ins.ts";
import { basic, browse, OPS_TOKEN } from "../support/browse.ts";
import { makeOperator, type TestOperator } from "../support/operators.ts";
import { untilPast } from "../support/outside-transaction.ts";
import { scrape } from "../support/scrape.ts";
import type { TestApi } from "../support/service.ts";
import { issueVouchers, makePartner, provisioning } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";
import { type IssuerKey, makeIssuerKey, secondsFromNow, signClaims, writeKeysFile } from "../support/user-tokens.ts";

const NAMED = { OPS_WRITABLE: "true", TRUST_PROXY: "127.0.0.1" };
// Two processes with OPS_TOKEN, one with named operators only, and one with a low rate limit.
const service = useService({
  apis: [{ OPS_TOKEN, ...NAMED }, { OPS_TOKEN }, NAMED, { OPS_TOKEN, ...NAMED, RATE_LIMIT_RPS: "5" }],
});
const { db, servers, apis } = service;
const [api, other, namedOnly] = apis;
const limited = apis[3] as TestApi;

/** Each caller has its own address, so that one test's limits do not affect another test. */
let addresses = 0;
const elsewhere = () => ({ "x-forwarded-for": `192.0.2.${++addresses}` });
const open = (headers: Record<string, string>, at: TestApi = api, path = "/overview.json") =>
  browse(`${at.url}/ops${path}`, { headers: { accept: "application/json", ...elsewhere(), ...headers } });
const codeOf = async (headers: Record<string, string>, at: TestApi = api) => {
  const { status, text } = await open(headers, at);
  return status === 200 ? "200" : `${status} ${JSON.parse(text).code}`;
};

it("the operator pages exist soon after the first operator is created, even without OPS_TOKEN", async () => {
  expect(await codeOf({}, namedOnly)).toBe("404 not_found");
  const ways: unknown[] = [];
  const log = { ...namedOnly.ctx.log, info: (told: unknown) => ways.push(told) };
  const inProduction = { ...namedOnly.ctx, log, config: { ...namedOnly.ctx.config, production: true } };
  await expect(tellSignIns(inProduction as never)).rejects.toThrow(/^OPS_TOKEN is not set, which NODE_ENV=production/);
  const { headers } = await makeOperator(db, "viewer");
  await until(async () => (await codeOf(headers, namedOnly)) === "200");
  expect(await codeOf({}, namedOnly)).toBe("401 missing_password");
  await tellSignIns(inProduction as never);
  expect(ways).toEqual([{ ways: ["named operators"] }]);
  expect(await codeOf(basic(OPS_TOKEN), namedOnly)).toBe("401 wrong_password");
});

describe("a named operator", () => {
  let zoe: TestOperator;
  beforeAll(async () => {
    zoe = await makeOperator(db, "operator");
  });

  it("an operator signs in only with the correct name and token", async () => {
    expect(zoe.token).toMatch(/^pvo_[0-9A-HJKMNP-TV-Z]{47}$/);
    const mistyped = `${zoe.token.slice(0, -1)}${zoe.token.endsWith("0") ? "1" : "0"}`;
    const another = await makeOperator(db, "admin");
    expect(await codeOf(zoe.headers)).toBe("200");
    expect(await codeOf(basic(` ${zoe.token} `, `${zoe.name} `))).toBe("200");
    for (const headers of [
      basic(zoe.token, another.name),
      basic(another.token, zoe.name),
      basic(mistyped, zoe.name),
      basic(zoe.name, zoe.token),
      { authorization: `Bearer ${zoe.token}` },
    ]) {
      expect(await codeOf(headers)).toMatch(/^401 (wrong|missing)_password$/);
    }
  });

  it("the database stores no operator token, and audit entries name the operator and the kind of sign-in", async () => {
    const { rows } = await db.query("SELECT encode(token_hash, 'hex') AS hash FROM operator_tokens");
    expect(JSON.stringify(rows)).not.toContain(zoe.token);
    const { organizationId } = service.partner;
    for (const [headers, osUser, by] of [
      [zoe.headers, zoe.name, "operator"],
      [basic(OPS_TOKEN, zoe.name), `shared: ${zoe.name}`, "shared"],
    ] as const) {
      await open(headers, api, `/organizations/${organizationId}`);
      const last = await db.query("SELECT os_user, by FROM audit_entries ORDER BY id DESC LIMIT 1");
      expect(last.rows).toEqual([{ os_user: osUser, by }]);
    }
  });

  it("an operator cannot sign in after the operator's expiry time, by the database's clock", async () => {
    // On a busy machine, the first answer may come after the operator has expired. Then the test uses another operator.
    const { ends, brief, first } = await until(async () => {
      const ends = new Date(Date.now() + 1_000);
      const brief = await makeOperator(db, "viewer", ends);
      const first = await codeOf(brief.headers);
      return Date.now() < ends.getTime() ? { ends, brief, first } : null;
    });
    expect(first).toBe("200");
    await untilPast(db, ends);
    expect(await codeOf(brief.headers)).toBe("401 wrong_password");
  });

  it("an operator's old token works until its grace period ends, and the rotated token works at once", async () => {
    const { id, name, token } = await makeOperator(db, "viewer");
    const graceful = await rotateOperator.run(provisioning(db), id, { grace: 3_600_000 });
    for (const one of [token, graceful.token]) expect(await codeOf(basic(one, name))).toBe("200");
    const sudden = await rotateOperator.run(provisioning(db), id, { grace: 0 });
    for (const one of [token, graceful.token]) expect(await codeOf(basic(one, name))).toBe("401 wrong_password");
    expect(await codeOf(basic(sudden.token, name))).toBe("200");
  });

  it("every process refuses a revoked operator within a second", async () => {
    const operator = await makeOperator(db, "admin");
    for (const at of [api, other]) expect(await codeOf(operator.headers, at)).toBe("200");
    await revokeOperator.run(provisioning(db), operator.id, {});
    const revokedAt = performance.now();
    let lastAcceptedAt = revokedAt;
    const isRefused = async (at: TestApi) => {
      const sentAt = performance.now();
      const code = await codeOf(operator.headers, at);
      if (code === "200") lastAcceptedAt = sentAt;
      return code === "401 wrong_password";
    };
    await Promise.all([api, other].map((at) => until(() => isRefused(at))));
    expect(lastAcceptedAt - revokedAt).toBeLessThan(1_000);
  });

  it("a long administrative act stops when its operator is revoked, and shows the partial result", async () => {
    const admin = await makeOperator(db, "admin");
    await voidUntilEnded(
      api,
      async () => admin.headers,
      async () => {
        await revokeOperator.run(provisioning(db), admin.id, {});
      },
    );
  });
});

/** Voids a batch under a sign-in that `end` ends. Expects the page to say so, and other vouchers to stay unchanged. */
async function voidUntilEnded(at: TestApi, signIn: () => Promise<Record<string, string>>, end: () => Promise<void>) {
  const partner = await makePartner(db);
  const [first] = await issueVouchers(db, partner, 101);
  const { rows } = await db.query("SELECT batch_id AS id FROM vouchers WHERE id = $1", [first?.id]);
  const locker = new pg.Client(servers.databaseUrl);
  await locker.connect();
  await locker.query("BEGIN");
  // The locks on the vouchers delay the run, so the response begins before a voucher is voided.
  await locker.query("SELECT FROM vouchers WHERE batch_id = $1 FOR UPDATE", [rows[0].id]);
  const body = new URLSearchParams({ product: "Pass" });
  const headers = await signIn();
  const sent = await fetch(`${at.url}/ops/batches/${rows[0].id}/void`, { method: "POST", headers, body });
  await end();
  const endedAt = performance.now();
  await until(() => performance.now() - endedAt > 1_000);
  await locker.query("ROLLBACK");
  await locker.end();
  expect(await sent.text()).toMatch(/Your sign-in has ended, so the run was stopped\. Voided so far: 100\./);
  const voided = await db.query("SELECT FROM vouchers WHERE batch_id = $1 AND status = 'Voided'", [rows[0].id]);
  expect(voided.rowCount).toBe(100);
}

describe("a proxy's JWT", () => {
  let key: IssuerKey;
  let withJwt: TestApi;
  const claims = { iss: "https://login.test", aud: "operators", email: "zoe@shop.test", roles: ["viewer"] };
  const sign = (changes: object = {}, by = key) =>
    signClaims(by, { sub: "123", exp: secondsFromNow(60), ...claims, ...changes });
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

  beforeAll(async () => {
    key = await makeIssuerKey();
    const file = writeKeysFile(key);
    servers.onClose(async () => file.remove());
    const rules = { OPS_JWKS_URL: file.url, OPS_ISSUER: claims.iss, OPS_AUDIENCE: claims.aud };
    withJwt = await service.startApi({ ...rules, ...NAMED, OPS_ROLE_CLAIM: "realm.roles", OPS_JWT_HEADER: "X-Token" });
    plain = await service.startApi({ ...rules, ...NAMED, METRICS_PORT: "0" });
  });
  let plain: TestApi;

  it("a JWT's user is named by the name claim, or else by the subject, and gets the highest role", async () => {
    const path = `/organizations/${service.partner.organizationId}`;
    const cases: [changes: object, name: string][] = [
      [{}, "zoe@shop.test (sub 123)"],
      [{ roles: ["something", "viewer", "admin", "operator"] }, "zoe@shop.test (sub 123)"],
      [{ email: undefined, roles: "viewer" }, "123"],
      [{ email: "a\nb", roles: "Billing admin, operator" }, "123"],
    ];
    const pages: string[] = [];
    for (const [changes, name] of cases) {
      expect((await open(bearer(await sign(changes)), plain, path)).status).toBe(200);
      const { rows } = await db.query("SELECT os_user, by FROM audit_entries ORDER BY id DESC LIMIT 1");
      expect(rows).toEqual([{ os_user: name, by: "jwt" }]);
      pages.push((await open({ ...bearer(await sign(changes)), accept: "text/html" }, plain, "")).text);
    }
    const listed = await selectAuditEntries(db, { entityId: null, user: "zoe@shop.test", limit: 10 });
    expect(listed.map(({ osUser }) => osUser)).toEqual(Array(2).fill("zoe@shop.test (sub 123)"));
    const roles = pages.map((page) => /with the role (\w+)/.exec(page)?.[1]);
    expect(roles).toEqual(["viewer", "admin", "viewer", "operator"]);
  });

  it.each([
    ["an address that is not verified", { email_verified: false }, "123"],
    ["an address that is not verified, as text", { email_verified: "false" }, "123"],
    ["a verified address", { email_verified: true }, "zoe@shop.test (sub 123)"],
    ["a blank", { email: " \u00a0 " }, "123"],
    ["fillers and zero width", { email: "\u3164\u200b\u2800" }, "123"],
    ["zero width at its end", { email: "zoe@shop.test\u200b" }, "zoe@shop.test\\u{200b} (sub 123)"],
    ["a bidirectional override", { email: "\u202eeoz" }, "\\u{202e}eoz (sub 123)"],
    ["a Cyrillic letter beside Latin ones", { email: "zo\u0435" }, "zo\\u{435} (sub 123)"],
    ["full-width letters", { email: "\uff5aoe" }, "\\u{ff5a}oe (sub 123)"],
    ["Cyrillic letters alone", { email: "Вера" }, "Вера (sub 123)"],
    ["accents", { email: "Zoe\u0308 Ångström" }, "Zoë Ångström (sub 123)"],
    ["its subject", { email: "123" }, "123"],
    ["a subject with zero width", { sub: "1\u200b" }, "zoe@shop.test (sub 1\\u{200b})"],
  ])("an audit entry has a JWT's escaped name and subject, or only the subject: %s", async (_, changes, name) => {
    const path = `/organizations/${service.partner.organizationId}`;
    expect((await open(bearer(await sign(changes)), plain, path)).status).toBe(200);
    const { rows } = await db.query("SELECT os_user FROM audit_entries ORDER BY id DESC LIMIT 1");
    expect(rows).toEqual([{ os_user: name }]);
  });

  it("a JWT is refused if neither its name nor its subject has a visible character", async () => {
    expect(await codeOf(bearer(await sign({ email: "\u200b", sub: "\u3164" })), plain)).toBe("401 invalid_token");
  });

  it("a JWT is refused if it is expired, unsigned, from another issuer or without a role", async () => {
    const unsigned = (await sign()).split(".").with(0, Buffer.from('{"alg":"none"}').toString("base64url"));
    for (const token of [
      await sign({ iss: "https://other.test" }),
      await sign({ aud: "shop" }),
      await sign({ exp: secondsFromNow(-60) }),
      await sign({ exp: undefined }),
      await sign({}, { ...(await makeIssuerKey()), kid: key.kid }),
      `${unsigned[0]}.${unsigned[1]}.`,
      unsigned.join("."),
      "x",
    ]) {
      const { status, headers, text } = await open(bearer(token), plain);
      expect([status, JSON.parse(text).code]).toEqual([401, "invalid_token"]);
      expect(headers.get("www-authenticate")).toMatch(/^Bearer /);
    }
    const compound = [
      "viewer admin",
      "Billing admin",
      "operator\tviewer",
      "admin;viewer",
      ["Billing admin", "viewer,admin"],
    ];
    for (const roles of [undefined, [], ["root"], "viewers", { viewer: false }, 1, ...compound]) {
      expect(await codeOf(bearer(await sign({ roles })), plain)).toBe("403 missing_role");
    }
    const errorOf = async (roles: unknown) =>
      JSON.parse((await open(bearer(await sign({ roles })), plain)).text).error as string;
    expect(await errorOf(["Billing admin", "x".repeat(100)])).toBe(
      `Your sign-in has no role: its claim roles has Billing admin, ${"x".repeat(60)}, and needs one of: ` +
        "viewer, operator, admin.",
    );
    expect(await errorOf(undefined)).toMatch(/has no claim roles, which OPS_ROLE_CLAIM names, but .*\bemail\b/);
  });

  it("every process's overview names the variable because of which a correctly signed JWT was refused", async () => {
    const refuse = async (token: string) => codeOf({ "x-token": token }, withJwt);
    expect(await refuse(await sign({ aud: "forged" }, { ...(await makeIssuerKey()), kid: key.kid }))).toMatch(/^401/);
    expect(await refuse(await sign({ aud: "shop" }))).toBe("401 invalid_token");
    expect(await refuse(await sign({ realm: { roles: ["till"] } }))).toBe("403 missing_role");
    const shown = async () => {
      const overview = JSON.parse((await open(bearer(await sign()), plain)).text);
      const found = (subject: string) => overview.attention.find((one: { subject: string }) => one.subject === subject);
      return [found("OPS_AUDIENCE"), found("OPS_ROLE_CLAIM")];
    };
    const refused = { runbook: "VouchersSignInsFail", severity: "grey" };
    expect(await until(async () => ((await shown()).includes(undefined) ? null : shown()))).toMatchObject([
      { ...refused, what: expect.stringContaining('refused: its aud is "shop", and OPS_AUDIENCE is operators') },
      { ...refused, what: expect.stringMatching(/has no role: its claim realm\.roles has till, and needs one of/) },
    ]);
  });

  it("invalid JWTs do not block valid sign-ins from the same address, and expired JWTs are not counted", async () => {
    const address = elsewhere();
    const exp = secondsFromNow(-60);
    const count = async () => (await scrape(plain.metricsUrl)).value("voucher_sign_ins_failed_total") ?? 0;
    const before = await count();
    const expired = { ...bearer(await sign({ exp })), ...address };
    for (let attempt = 0; attempt < 12; attempt += 1) expect(await codeOf(expired, plain)).toBe("401 invalid_token");
    expect(await count()).toBe(before);
    const wrong = [basic("wrong"), bearer("x"), bearer(await sign({ exp, aud: "shop" }))];
    for (let attempt = 0; attempt < 12; attempt += 1) {
      expect(await codeOf({ ...wrong[attempt % wrong.length], ...address }, plain)).toMatch(/^401 /);
    }
    expect((await count()) - before).toBe(12);
    for (const headers of [bearer(await sign()), (await makeOperator(db, "viewer")).headers]) {
      expect(await codeOf({ ...headers, ...address }, plain)).toBe("200");
    }
  });

  it("a long administrative act ends when its operator's JWT expires, by the database's clock", async () => {
    let exp = 0;
    let headers: Record<string, string> = {};
    const signIn = async () => {
      // The service tolerates clocks that differ by ten seconds, so it accepts this JWT for five more seconds.
      exp = secondsFromNow(-5);
      headers = { ...bearer(await sign({ exp, roles: ["admin"] })), ...elsewhere() };
      return headers;
    };
    await voidUntilEnded(plain, signIn, () => untilPast(db, new Date((exp + 10) * 1_000)));
    expect(await codeOf(headers, plain)).toBe("401 invalid_token");
  });

  it("the JWT's header and role claim are configurable, and HTTP Basic takes precedence over a JWT", async () => {
    const token = await sign({ realm: { roles: ["admin"] }, roles: undefined });
    expect(await codeOf({ "x-token": token }, withJwt)).toBe("200");
    expect(await codeOf(bearer(token), withJwt)).toBe("401 missing_password");
    const { headers } = await makeOperator(db, "viewer");
    expect(await codeOf({ ...headers, "x-token": "x" }, withJwt)).toBe("200");
  });
});

it("failed sign-ins do not block valid sign-ins from the same address, and signing out asks again", async () => {
  const address = elsewhere();
  for (let attempt = 0; attempt < 12; attempt += 1) {
    expect(await codeOf({ ...basic("wrong"), ...address })).toBe("401 wrong_password");
  }
  for (const path of ["/overview.json", "/queues/jobs/api/queues"]) {
    expect((await open({ ...basic(OPS_TOKEN), ...address }, api, path)).status, path).toBe(200);
  }
  const signedOut = await open(basic(OPS_TOKEN), api, "/sign-out");
  expect([signedOut.status, signedOut.headers.get("www-authenticate")]).toEqual([
    401,
    expect.stringMatching(/^Basic /),
  ]);
});

it("wrong sign-ins are limited per address, and do not block valid sign-ins", async () => {
  const { id, name, token } = await makeOperator(db, "viewer");
  await rotateOperator.run(provisioning(db), id, { grace: 0 });
  const { headers } = await makeOperator(db, "viewer");
  const address = elsewhere();
  const flood = Array.from({ length: 200 }, () => codeOf({ ...basic(token, name), ...address }, limited));
  for (const right of [headers, basic(OPS_TOKEN)]) {
    expect(await codeOf({ ...right, ...address }, limited)).toBe("200");
  }
  const wrong = Map.groupBy(await Promise.all(flood), String);
  expect([...wrong.keys()].sort()).toEqual(["401 wrong_password", "429 rate_limited"]);
});
