import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { CONFIG_PARTS } from "../../src/open/config-parts.ts";
import * as config from "../../src/platform/config.ts";
import {
  ConfigError,
  describeLocalAddress,
  readAlertConfig,
  readDatabaseUrl,
  readGranteePasswords,
  readWingConfig,
} from "../../src/platform/config.ts";
import { secretNames } from "../../src/platform/environment.ts";
import { parseRedisUrl } from "../../src/platform/redis/addresses.ts";
import { webhookVariables } from "../../src/webhooks/declared.ts";
import { VARIABLE_NAMES } from "../support/variable-names.ts";

type Environment = Record<string, string | undefined>;

const readConfig = (env: Environment) => config.readConfig(env, CONFIG_PARTS);
const readApiConfig = (env: Environment) => config.readApiConfig(env, CONFIG_PARTS);
const readWorkerConfig = (env: Environment) => config.readWorkerConfig(env, CONFIG_PARTS);
const readWebhookConfig = (env: Environment) => readWingConfig(env, webhookVariables);

const REQUIRED = { DATABASE_URL: "postgres://app:secret@db.internal:5432/vouchers", REDIS_URL: "redis://cache:6379/0" };
const OWN_SECRET = "a secret of our own that is long enough";

const PRODUCTION = { NODE_ENV: "production", RESERVATION_TOKEN_SECRET: OWN_SECRET };

it.each<[on: boolean, env: Environment]>([
  [true, { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" }],
  [true, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://collector:4318" }],
  [true, { OTEL_TRACES_EXPORTER: "console" }],
  [true, { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318", OTEL_SDK_DISABLED: "false" }],
  [false, { OTEL_SERVICE_NAME: "vouchers" }],
  [false, { OTEL_EXPORTER_OTLP_ENDPOINT: "" }],
  [false, { OTEL_TRACES_EXPORTER: "none" }],
  [false, { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318", OTEL_TRACES_EXPORTER: "none" }],
  [false, { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318", OTEL_SDK_DISABLED: " TRUE " }],
  [false, { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "http://collector:4318" }],
])("traces are on (%s) with the variables %j", (on, env) => {
  expect(read(env).traces.on).toBe(on);
});

it("the configuration recognizes a service name in each of OpenTelemetry's variables", () => {
  expect(read({ OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=test" }).traces.serviceNamed).toBe(false);
  expect(read({ OTEL_SERVICE_NAME: "till" }).traces.serviceNamed).toBe(true);
  expect(read({ OTEL_RESOURCE_ATTRIBUTES: "a=b,service.name=till" }).traces.serviceNamed).toBe(true);
});

it("the configuration requires the addresses of Postgres and Redis, and has defaults for the rest", () => {
  const { reservationTokenSecrets, workerQueues, queues, ...others } = readConfig(REQUIRED);
  expect(queues).toBe(CONFIG_PARTS.queues);
  expect(others).toEqual({
    production: false,
    port: 3000,
    host: null,
    baseUrl: "http://localhost:3000",
    basePath: "",
    databaseUrl: REQUIRED.DATABASE_URL,
    redisUrl: REQUIRED.REDIS_URL,
    redisPassword: null,
    queueShards: [1],
    workerShards: null,
    reservationRetentionMs: 90 * 86_400_000,
    reservationMaxMs: 86_400_000,
    reservationSeconds: null,
    redeemWaitMs: 10_000,
    rateLimitRps: 200,
    missLimitPerMinute: 60,
    trustProxy: [],
    corsOrigins: [],
    logLevel: "info",
    workerConcurrency: 64,
    users: { jwksUrl: null, issuer: null, audience: null },
    ops: {
      token: null,
      isOff: false,
      jwksUrl: null,
      issuer: null,
      audience: null,
      jwtHeader: "authorization",
      nameClaim: "email",
      roleClaim: "roles",
      roleMap: null,
      writable: false,
      databaseUrl: REQUIRED.DATABASE_URL,
    },
    issuer: { databaseUrl: null },
    securityContact: null,
    storefrontUrl: null,
    sweepIntervalMs: 5_000,
    chainCheckMs: 168 * 3_600_000,
    keepAliveMs: 620_000,
    headersMax: 32_768,
    metricsPort: null,
    privateReceivers: false,
    ofWings: {
      transparency: { keyFile: null, origin: null, anchors: [], policyFile: null, intervalMs: 1_000 },
      webhooks: { secret: null },
    },
    alerts: { url: null, secret: null },
    traces: { on: false, serviceNamed: false },
  });
  expect(reservationTokenSecrets).toHaveLength(1);
  expect(workerQueues).toEqual(expect.arrayContaining(["redeem", "seal"]));
});

it.each([
  ["SWEEP_INTERVAL_MS", "VouchersSweeperStopped", 60_000],
  ["LOG_INTERVAL_MS", "VouchersLogLag", 30_000],
])("the maximum of %s is at most half of the time after which the alert %s is raised", (variable, name, maxMs) => {
  const rules = readFileSync(new URL("../../docs/observability/prometheus-rules.yml", import.meta.url), "utf8");
  const expr = new RegExp(`alert: ${name}\\n +expr: (.*)`).exec(rules)?.[1] ?? "";
  const [, seconds] = /\[(\d+)s\]|> (\d+)$/.exec(expr)?.filter(Boolean) ?? [];
  expect(maxMs).toBeLessThanOrEqual((Number(seconds) * 1_000) / 2);
  readConfig({ ...REQUIRED, [variable]: String(maxMs) });
  expect(() => readConfig({ ...REQUIRED, [variable]: String(maxMs + 1) })).toThrow(variable);
});

it.each<[variable: string, value: string, read: object]>([
  ["NODE_ENV", "production", { production: true }],
  ["NODE_ENV", "test", { production: false }],
  ["PORT", "8080", { port: 8080, baseUrl: "http://localhost:8080" }],
  ["BASE_URL", "https://v.example/", { baseUrl: "https://v.example", basePath: "" }],
  ["BASE_URL", "https://v.example/eu/api//", { baseUrl: "https://v.example/eu/api", basePath: "/eu/api" }],
  ["DATABASE_URL", "postgresql://other/db", { databaseUrl: "postgresql://other/db" }],
  ["DATABASE_URL", "postgres://app:a,b@db.internal/x", { databaseUrl: "postgres://app:a,b@db.internal/x" }],
  ...[
    "postgres://app:pa55@/vouchers?host=/cloudsql/project:region:instance",
    "postgresql://app@/vouchers?sslmode=disable&host=/var/run/postgresql",
    "postgresql:///vouchers?host=/var/run/postgresql",
    "postgres://app:pa55@%2Fvar%2Frun%2Fpostgresql/vouchers",
  ].map((url): [string, string, object] => ["DATABASE_URL", url, { databaseUrl: url }]),
  ["REDIS_URL", "rediss://:secret@cache/1", { redisUrl: "rediss://:secret@cache/1" }],
  ["QUEUE_SHARDS", "4,6", { queueShards: [4, 6] }],
  ["RESERVATION_SECONDS", "60", { reservationSeconds: 60 }],
  ["RESERVATION_RETENTION_DAYS", "31", { reservationRetentionMs: 31 * 86_400_000 }],
  [
    "RESERVATION_TOKEN_SECRET",
    `${OWN_SECRET}, the older secret`,
    { reservationTokenSecrets: [OWN_SECRET, "the older secret"] },
  ],
  ["REDEEM_WAIT_MS", "2500", { redeemWaitMs: 2_500 }],
  ["RATE_LIMIT_RPS", "50", { rateLimitRps: 50 }],
  ["MISS_LIMIT_PER_MINUTE", "0", { missLimitPerMinute: 0 }],
  ["TRUST_PROXY", " 10.0.0.0/8 ,,2001:db8::1,", { trustProxy: ["10.0.0.0/8", "2001:db8::1"] }],
  ["TRUST_PROXY", "2001:db8::/32,::ffff:10.0.0.1,192.0.2.1/32", { trustProxy: expect.any(Array) }],
  ["CORS_ORIGINS", "https://a.example, http://[::1]:8080", { corsOrigins: ["https://a.example", "http://[::1]:8080"] }],
  ["STOREFRONT_URL", "https://shop.example/r?c={code}", { storefrontUrl: "https://shop.example/r?c={code}" }],
  ["LOG_LEVEL", "warn", { logLevel: "warn" }],
  ["WORKER_CONCURRENCY", "8", { workerConcurrency: 8 }],
  ["WORKER_QUEUES", "seal , redeem", { workerQueues: ["seal", "redeem"] }],
  ["KEEP_ALIVE_SECONDS", "75", { keepAliveMs: 75_000 }],
  ["METRICS_PORT", "9464", { metricsPort: 9464 }],
  ["OPS_TOKEN", "sixteen letters!", { ops: { token: "sixteen letters!", isOff: false, writable: false } }],
  ["OPS_TOKEN", "off", { ops: { token: null, isOff: true } }],
  ["OPS_JWKS_URL", "https://login.example/keys", { ops: { jwksUrl: "https://login.example/keys" } }],
  ["OPS_JWT_HEADER", "Cf-Access-Jwt-Assertion", { ops: { jwtHeader: "cf-access-jwt-assertion" } }],
  ["LOG_ANCHOR", "file:/a, file:/b,", { ofWings: { transparency: { anchors: ["/a", "/b"] } } }],
  ["LOG_ANCHOR", "file:/home/Acme, Inc/a", { ofWings: { transparency: { anchors: ["/home/Acme, Inc/a"] } } }],
  ["OPS_NAME_CLAIM", "name", { ops: { nameClaim: "name", roleClaim: "roles" } }],
  [
    "OPS_ROLE_MAP",
    "CN=x=admin, Tills=viewer",
    {
      ops: {
        roleMap: [
          ["CN=x", "admin"],
          ["Tills", "viewer"],
        ],
      },
    },
  ],
  ["OPS_ROLE_CLAIM", "realm_access.roles", { ops: { roleClaim: "realm_access.roles", nameClaim: "email" } }],
  ["OPS_WRITABLE", "true", { ops: { writable: true } }],
  ["OPS_DATABASE_URL", "postgres://pva_admin@db/x", { ops: { databaseUrl: "postgres://pva_admin@db/x" } }],
  ["ISSUER_API", "true", { issuer: { databaseUrl: REQUIRED.DATABASE_URL } }],
  ["AUTH_JWKS_URL", "file:///keys.json", { users: { jwksUrl: "file:///keys.json" } }],
  ["AUTH_ISSUER", "https://login.example/", { users: { issuer: ["https://login.example/"] } }],
  ["AUTH_AUDIENCE", "vouchers, tills", { users: { audience: ["vouchers", "tills"] } }],
  ["WEBHOOK_SECRET", "s".repeat(32), { ofWings: { webhooks: { secret: "s".repeat(32) } } }],
  ["WEBHOOK_ALLOW_PRIVATE", "true", { privateReceivers: true }],
  ["ALERT_URL", "https://hooks.example.com/T0/x", { alerts: { url: "https://hooks.example.com/T0/x" } }],
])("the configuration reads %s=%s", (name, value, expected) => {
  expect(read({ [name]: value })).toMatchObject(expected);
});

it("in production, the issuer API uses only the login of OPS_DATABASE_URL", () => {
  expect(read({ ...PRODUCTION, ISSUER_API: "true" }).issuer.databaseUrl).toBeNull();
  const admin = "postgres://pva_admin@db/x";
  expect(read({ ...PRODUCTION, ISSUER_API: "true", OPS_DATABASE_URL: admin }).issuer.databaseUrl).toBe(admin);
});

it("the configuration treats an empty variable as unset, and ignores unknown variables", () => {
  const optional = VARIABLE_NAMES.filter((name) => !(name in REQUIRED));
  const empty = Object.fromEntries(optional.map((name) => [name, ""]));
  expect(read({ ...empty, PATH: "/bin", PORTS: "x" })).toEqual(readConfig(REQUIRED));
  expect(complaints({ DATABASE_URL: "" })).toEqual(["DATABASE_URL is not set"]);
});

it.each([
  "postgres://a,b/vouchers",
  "postgres://app:pa55@a:5432,b:5432/vouchers",
  "postgresql:///vouchers?host=a,b",
  "postgres://a/vouchers?sslmode=require&host=a%2Cb",
])("the configuration refuses several hosts in %s, and shows a correct address", (url) => {
  const [complaint = "", ...more] = complaints({ DATABASE_URL: url });
  expect(more).toEqual([]);
  expect(complaint.split("; ")).toEqual([
    "DATABASE_URL names several hosts, which the service does not choose between",
    "give one address that always leads to the primary, such as a proxy's",
  ]);
});

it.each(["DATABASE_URL", "REDIS_URL"])("the configuration says that the password in %s must be encoded", (name) => {
  const scheme = name === "REDIS_URL" ? "redis" : "postgres";
  for (const rest of ["app:pa#ss@h/x", "app:pa/ss@h/x", "app:#1@h", "app:12?3@h", "a:p@a/b@h/x", ":1#2@h", "a/b:p@h"]) {
    const [complaint, ...more] = complaints({ [name]: `${scheme}://${rest}` });
    expect({ rest, complaint, more }).toEqual({
      rest,
      complaint: expect.stringContaining("write %23 for #"),
      more: [],
    });
  }
});

it("the configuration accepts an @ in an address's parameter, and a percent-encoded password", () => {
  for (const url of ["postgres://h/x?user=me@corner", "postgres://a:%23%2F%3F%40@h/x", "postgres://me@corner:1@h/x"])
    expect(read({ DATABASE_URL: url }).databaseUrl).toBe(url);
});

it.each([
  ["sslmode=verify-full&sslrootcert=/nowhere/ca.pem", "DATABASE_URL cannot be used: ENOENT: no such file"],
  [
    "uselibpqcompat=true&sslmode=verify-ca",
    "DATABASE_URL cannot be used: SECURITY WARNING: Using sslmode=verify-ca requires",
  ],
])("the configuration explains in one line why it refuses an address with %s", (parameters, words) => {
  const [complaint, ...more] = complaints({ DATABASE_URL: `postgres://app:pa55@h/x?${parameters}` });
  expect({ complaint, more }).toEqual({ complaint: expect.stringContaining(words), more: [] });
  expect(complaint).not.toContain("pa55");
});

/** Values of CORS_ORIGINS that no browser sends as an origin, or that would admit every page. */
const HOSTILE_ORIGINS = [
  ...`* null , true shop.example //shop.example https:// https://* https://*.example https://shop.example/
    https://shop.example/path https://shop.example?x https://shop.example#x https://shop.example:443
    https://Shop.example https://user@shop.example https://shop.example\\evil.example https://bücher.example
    file:///etc/passwd ftp://shop.example javascript:alert(1) data:text/html,x
    https://shop.example;https://other.example https://shop.example,* https://shop.example,null`.split(/\s+/),
  ...["https://shop.example\r\nSet-Cookie: a=b", "https://shop .example", "https://shop.example https://other.example"],
];

it.each<[name: string, ...values: string[]]>([
  ["NODE_ENV", "prod", "Production", "staging"],
  ["PORT", "http", "-1", "65536", "80.5", "NaN", "Infinity", "3000;", "true"],
  ["BASE_URL", "vouchers.example", "/api", "ftp://vouchers.example", "javascript:alert(1)", "http://", "http:x"],
  ["BASE_URL", "https://v.example/?tenant=1", "https://v.example/#top"],
  ["DATABASE_URL", "localhost", "mysql://db/vouchers", "http://db/vouchers", "postgres"],
  ["DATABASE_URL", "postgres://app:secret@/vouchers", "postgres://app:secret@/vouchers?ghost=/tmp"],
  ["AUTH_JWKS_URL", "login.example", "/jwks.json", "ftp://login.example/jwks.json", "data:application/json,{}"],
  ["REDIS_URL", "localhost:6379", "http://cache", "postgres://db/x", "redis://a,http://b"],
  ["QUEUE_SHARDS", "0", "257", "2,2", "1,2,3", "many", "-1"],
  ["RESERVATION_RETENTION_DAYS", "30", "3651", "90d"],
  ["RESERVATION_SECONDS", "0", "-900", "86401", "15m", "0.5"],
  ["RESERVATION_TOKEN_SECRET", "short", ",", `${OWN_SECRET},short`, "123456789012345"],
  ["CORS_ORIGINS", ...HOSTILE_ORIGINS],
  ["REDEEM_WAIT_MS", "99", "60001", "10s", "-1"],
  ["RATE_LIMIT_RPS", "-1", "1000001", "off", "2.5"],
  ["MISS_LIMIT_PER_MINUTE", "-1", "1000001", "none", "0.5"],
  ["LOG_LEVEL", "verbose", "INFO", "30"],
  ["METRICS_PORT", "nine"],
  ["WORKER_CONCURRENCY", "0", "1001", "many", "1.5"],
  ["OPS_TOKEN", "fifteen letters", "OFF", "on"],
  ["OPS_JWKS_URL", "login.example", "ftp://login.example/keys"],
  ["OPS_JWT_HEADER", "X Token", "X-Token:"],
  ["OPS_WRITABLE", "1", "yes", "TRUE"],
  ["ISSUER_API", "1", "yes", "TRUE"],
  ["OPS_DATABASE_URL", "mysql://db/vouchers"],
  ["STOREFRONT_URL", "https://shop.example/r", "http://shop.example/{code}", "https://{code}.example/"],
  ["STOREFRONT_URL", "https://[/{code}", "javascript:alert({code})"],
  [
    "TRUST_PROXY",
    ..."true 1 * loopback uniquelocal 10.0.0.0/33 10.0.0.0/-1 10.0.0.0/ 10.0.0.0/8/8 10.0.0.0/a".split(" "),
  ],
  [
    "TRUST_PROXY",
    ..."2001:db8::/129 10.0.0 10.0.0.10-10.0.0.19 proxy.internal 10.0.0.1,true".split(" "),
    "10.0.0.1 10.0.0.2",
  ],
  // TRUST_PROXY=true would trust all addresses.
  ["TRUST_PROXY", "0.0.0.0/0", "::/0", "10.0.0.1,0.0.0.0/0"],
  ["WEBHOOK_SECRET", "s".repeat(31)],
  [
    "ALERT_URL",
    "hooks.example.com",
    "http://hooks.example.com",
    "https://127.0.0.1/x",
    "https://a:b@hooks.example.com",
  ],
  ["ALERT_SECRET", "s".repeat(40), "whsec_short", `whsec_${"a".repeat(33)}`],
  ["WORKER_QUEUES", "redeem,mail", ",", "all", "redeem seal"],
])("the configuration refuses a wrong %s, and names it", (name, ...values) => {
  for (const value of values) {
    const lines = complaints({ [name]: value });
    expect(lines.length, `${name}=${value}`).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(new RegExp(`^${name} .{4}`));
  }
});

/** A value of each variable that differs from its default. */
const VALID: Record<string, string> = {
  NODE_ENV: "production",
  PORT: "3100",
  BASE_URL: "https://vouchers.example.com",
  ...REQUIRED,
  REDIS_PASSWORD: "#/?@",
  QUEUE_SHARDS: "4",
  WORKER_SHARDS: "0,1",
  RESERVATION_SECONDS: "60",
  RESERVATION_RETENTION_DAYS: "100",
  RESERVATION_TOKEN_SECRET: OWN_SECRET,
  REDEEM_WAIT_MS: "5000",
  RATE_LIMIT_RPS: "7",
  MISS_LIMIT_PER_MINUTE: "7",
  TRUST_PROXY: "10.0.0.1",
  CORS_ORIGINS: "https://shop.example.com",
  LOG_LEVEL: "warn",
  WORKER_CONCURRENCY: "7",
  WORKER_QUEUES: "redeem",
  AUTH_JWKS_URL: "https://login.example.com/keys",
  AUTH_ISSUER: "login",
  AUTH_AUDIENCE: "vouchers",
  OPS_TOKEN: "a token of the operators",
  OPS_JWKS_URL: "https://login.example.com/keys",
  OPS_ISSUER: "login",
  OPS_AUDIENCE: "operators",
  OPS_JWT_HEADER: "x-token",
  OPS_NAME_CLAIM: "name",
  OPS_ROLE_CLAIM: "groups",
  OPS_ROLE_MAP: "Voucher Admins=admin",
  OPS_WRITABLE: "true",
  ISSUER_API: "true",
  OPS_DATABASE_URL: "postgres://ops@db/vouchers",
  SECURITY_CONTACT: "mailto:security@example.com",
  STOREFRONT_URL: "https://shop.example.com/{code}",
  SWEEP_INTERVAL_MS: "700",
  CHAIN_CHECK_HOURS: "7",
  KEEP_ALIVE_SECONDS: "70",
  MAX_HEADER_KB: "64",
  HOST: "127.0.0.1",
  METRICS_PORT: "9100",
  LOG_KEY_FILE: "/run/log.key",
  LOG_ORIGIN: "vouchers.example.com/log",
  LOG_ANCHOR: "file:/run/anchor",
  LOG_POLICY: "/run/policy",
  LOG_INTERVAL_MS: "700",
  WEBHOOK_SECRET: "w".repeat(32),
  WEBHOOK_ALLOW_PRIVATE: "false",
  ALERT_URL: "https://hooks.example.com/services/T0/B0/x",
  ALERT_SECRET: `whsec_${"a".repeat(32)}`,
  OTEL_SDK_DISABLED: "true",
  OTEL_TRACES_EXPORTER: "console",
  OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318",
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://collector:4318",
  OTEL_SERVICE_NAME: "vouchers",
  OTEL_RESOURCE_ATTRIBUTES: "a=b",
};
const secretFile = join(mkdtempSync(join(tmpdir(), "voucher-secret-")), "secret");
afterAll(() => rmSync(dirname(secretFile), { recursive: true }));

it.each(
  VARIABLE_NAMES,
)("the configuration reads %s without surrounding white space, and refuses quotes or an inner line end", (name) => {
  const value = VALID[name] ?? "";
  const expected = read({ ...VALID, [name]: value });
  for (const text of [`${value}\n`, `${value}\r`, `${value}\r\n`, ` ${value}\t`, `\ufeff${value}\u00a0`])
    expect(read({ ...VALID, [name]: text }), JSON.stringify(text)).toEqual(expected);
  for (const text of [`"${value}"`, `'${value}'`, `${value}\n${value}`])
    expect(complaints({ ...VALID, [name]: text }), JSON.stringify(text)).toEqual([expect.stringMatching(`^${name} `)]);
});

it.each(
  secretNames(CONFIG_PARTS),
)("the configuration reads %s from a file or from a variable, but refuses both at once", (name) => {
  const value = VALID[name] ?? "p".repeat(16);
  const { [name]: _, ...others } = VALID;
  const file = { [`${name}_FILE`]: secretFile };
  const readAll = (env: Environment) => ({ ...readConfig(env), ...readGranteePasswords(env) });
  writeFileSync(secretFile, `${value}\n`);
  expect(readAll({ ...others, ...file })).toEqual(readAll({ ...others, [name]: value }));
  expect(config.resolveFiles(file, CONFIG_PARTS)).toMatchObject({ [name]: value });
  expect(complaints({ ...VALID, [name]: value, ...file }, readAll)).toEqual([`${name} and ${name}_FILE are both set`]);
  writeFileSync(secretFile, "\n");
  expect(complaints({ [name]: undefined, ...file }, readAll)).toEqual([
    expect.stringMatching(`^${name}_FILE .* empty$`),
  ]);
  const missing = { [name]: undefined, [`${name}_FILE`]: "/nowhere/secret" };
  expect(complaints(missing, readAll)).toEqual([expect.stringMatching(`^${name}_FILE .* cannot be read`)]);
});

it("the configuration names every wrong variable at once, one per line", () => {
  const bad = { PORT: "http", REDIS_URL: undefined, TRUST_PROXY: "true", RESERVATION_TOKEN_SECRET: "short" };
  const lines = complaints(bad);
  expect(lines.map((line) => line.split(" ")[0]).sort()).toEqual(Object.keys(bad).sort());
  expect(lines).toContain("REDIS_URL is not set");
});

it("the configuration's message about a wrong secret or address does not show the value", () => {
  const DATABASE_URL = "mysql://app:pa55word@db/x";
  const lines = complaints({ RESERVATION_TOKEN_SECRET: "s3cr3t,s3cr3t", OPS_TOKEN: "s3cr3t", DATABASE_URL });
  expect(lines).toHaveLength(3);
  expect(lines.join()).not.toMatch(/s3cr3t|pa55word/);
});

it("production refuses the development secret for reservation tokens, anywhere in the list or by default", () => {
  const [development = ""] = readConfig(REQUIRED).reservationTokenSecrets;
  for (const value of [undefined, "", development, `${OWN_SECRET},${development}`, `${development},${OWN_SECRET}`]) {
    for (const readOf of [readApiConfig, readWorkerConfig]) {
      const lines = complaints({ NODE_ENV: "production", RESERVATION_TOKEN_SECRET: value }, readOf);
      expect(lines).toEqual([expect.stringMatching(/^RESERVATION_TOKEN_SECRET .*production/)]);
    }
  }
  expect(complaints({ NODE_ENV: "production", WORKER_QUEUES: "seal" }, readWorkerConfig)).toEqual([]);
});

it("production accepts operators' JWTs only with a named issuer and audience", () => {
  const tokens = { OPS_JWKS_URL: "https://login.example/keys", OPS_ISSUER: "login", OPS_AUDIENCE: "operators" };
  expect(complaints({ ...PRODUCTION, ...tokens })).toEqual([]);
  for (const name of ["OPS_ISSUER", "OPS_AUDIENCE"]) {
    expect(complaints({ ...tokens, [name]: undefined })).toEqual([]);
    expect(complaints({ ...PRODUCTION, ...tokens, [name]: undefined })).toEqual([
      expect.stringMatching(`^${name} is not set`),
    ]);
  }
});

it("readDatabaseUrl reads the database's address and no other variable", () => {
  expect(readDatabaseUrl({ DATABASE_URL: REQUIRED.DATABASE_URL, PORT: "http" })).toBe(REQUIRED.DATABASE_URL);
  for (const DATABASE_URL of [undefined, "", "localhost", "mysql://db/x"]) {
    expect(complaints({ DATABASE_URL }, readDatabaseUrl)).toEqual([expect.stringMatching(/^DATABASE_URL /)]);
  }
});

const hosts = (url: string) => parseRedisUrl(url).map(({ host }) => host);

it("REDIS_URL accepts one address unchanged, even with commas in the password", () => {
  expect(hosts("redis://user:a,b@cache:6380/3?family=6")).toEqual(["cache:6380"]);
});

it.each([
  "redis://a:7001,b:7002,c",
  "redis://a:7001, redis://b:7002 ,redis://c",
  "redis://a:7001,b:7002,c/0",
])("REDIS_URL accepts nodes of a cluster as %s", (url) => {
  expect(hosts(read({ REDIS_URL: url }).redisUrl)).toEqual(["a:7001", "b:7002", "c"]);
});

it("the configuration replaces a TLS mode in DATABASE_URL of which the Postgres client would warn", () => {
  const modeOf = (query: string) => read({ DATABASE_URL: `postgres://db/vouchers?${query}` }).databaseUrl.split("?")[1];
  for (const mode of ["prefer", "require", "verify-ca"])
    expect(modeOf(`sslmode=${mode}&host=x`)).toBe("sslmode=verify-full&host=x");
  for (const query of ["sslmode=no-verify", "sslmode=disable", "uselibpqcompat=true&sslmode=require"])
    expect(modeOf(query)).toBe(query);
});

it("REDIS_PASSWORD may have any characters, and is used for addresses without a user", () => {
  const passwordsOf = (REDIS_URL: string) =>
    parseRedisUrl(read({ REDIS_URL, REDIS_PASSWORD: "a#/?@:$&%" }).redisUrl).map(({ password }) =>
      decodeURIComponent(password),
    );
  expect(passwordsOf("redis://cache:6379/1")).toEqual(["a#/?@:$&%"]);
  expect(passwordsOf("rediss://a,b")).toEqual(["a#/?@:$&%", "a#/?@:$&%"]);
  expect(passwordsOf("redis://user:own@cache")).toEqual(["own"]);
});

it("REDIS_URL uses the first node's user and password for every node", () => {
  const urls = parseRedisUrl("rediss://app:s%40cret@a,b:7002");
  expect(urls.map(({ href }) => href)).toEqual(["rediss://app:s%40cret@a", "rediss://app:s%40cret@b:7002"]);
});

it.each([
  ["redis://a,rediss://b", "mixes redis: and rediss:"],
  ["redis://x:1@a,redis://x:2@b", "has addresses with different users or passwords"],
  ["redis://x@a,redis://b", "has addresses with different users or passwords"],
  ["redis://a,b/1", "names database 1; a Redis Cluster has only database 0"],
  ["redis://a,b?family=6", "has parameters"],
  ["redis://a,,b", "has an address without a host"],
  ["redis://:pa%ss@a", "has a user or a password with #, / or \\? as it is"],
])("REDIS_URL refuses %s with one sentence", (url, sentence) => {
  expect(complaints({ REDIS_URL: url })).toEqual([expect.stringMatching(`^REDIS_URL ${sentence}`)]);
});

it("WORKER_SHARDS accepts shards up to the largest number in QUEUE_SHARDS", () => {
  expect(read({ QUEUE_SHARDS: "4,6", WORKER_SHARDS: "0, 5" }).workerShards).toEqual([0, 5]);
  for (const value of ["6", "0,6", "x", "-1"]) {
    const lines = complaints({ QUEUE_SHARDS: "6,4", WORKER_SHARDS: value });
    expect(lines).toEqual([expect.stringMatching(/^WORKER_SHARDS /)]);
  }
});

it("ALERT_URL may be a private address or plain HTTP only if WEBHOOK_ALLOW_PRIVATE is true", () => {
  for (const ALERT_URL of ["http://127.0.0.1:9000/alerts", "https://10.0.0.1/alerts"]) {
    expect(complaints({ ALERT_URL })).toEqual([expect.stringMatching(/^ALERT_URL must be /)]);
    expect(complaints({ ALERT_URL }, readAlertConfig)).toEqual([expect.stringMatching(/^ALERT_URL must be /)]);
    expect(read({ ALERT_URL, WEBHOOK_ALLOW_PRIVATE: "true" }).alerts.url).toBe(ALERT_URL);
  }
});

it("WEBHOOK_ALLOW_PRIVATE=true is refused in production", () => {
  for (const readOf of [readConfig, readWebhookConfig]) {
    const lines = complaints({ ...PRODUCTION, WEBHOOK_ALLOW_PRIVATE: "true" }, readOf);
    expect(lines).toEqual([expect.stringMatching(/^WEBHOOK_ALLOW_PRIVATE is true/)]);
  }
});

it("a worker process needs only the secrets of its own queues", () => {
  const only = (WORKER_QUEUES: string, env = {}) => complaints({ WORKER_QUEUES, ...env }, readWorkerConfig);
  expect(only("webhook")).toEqual([expect.stringMatching(/^WEBHOOK_SECRET is not set/)]);
  expect(only("webhook", { WEBHOOK_SECRET: OWN_SECRET })).toEqual([]);
  expect(only("log")).toEqual([expect.stringMatching(/^LOG_KEY_FILE is not set/)]);
  const both = "WEBHOOK_SECRET and LOG_KEY_FILE are not set, which WORKER_QUEUES=webhook,log requires";
  expect(only("webhook,log")).toEqual([both]);
  expect(only("webhook,log", { WEBHOOK_SECRET: OWN_SECRET })).toEqual([]);
});

function read(env: Environment = {}) {
  return readConfig({ ...REQUIRED, ...env });
}

/** Returns the lines of the error with which an environment prevents the start. */
function complaints(env: Environment, read: (env: Environment) => unknown = readConfig): string[] {
  try {
    read({ ...REQUIRED, ...env });
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split("\n");
    throw error;
  }
  return [];
}

it.each([
  ["https://vouchers.example.com", false],
  ["http://10.0.0.4:3000/vouchers", false],
  ["https://localhost.example.com", false],
  ["http://localhost:3000", true],
  ["http://api.localhost", true],
  ["http://127.0.0.1:3000", true],
  ["http://[::1]:3000", true],
])("describeLocalAddress says whether only this machine can reach BASE_URL %s: %s", (baseUrl, isLocal) => {
  expect(describeLocalAddress({ baseUrl }) !== null).toBe(isLocal);
});

it.each([
  ["NODE_TLS_REJECT_UNAUTHORIZED", "0"],
  ["DEBUG", "*"],
  ["DEBUG", "express:*,ioredis:redis"],
  ["DEBUG", "io* -ioredis:*"],
])("every process and command refuses %s=%s, because this setting would disclose secrets", (name, value) => {
  const env = { ...REQUIRED, [name]: value };
  for (const readIt of [readApiConfig, readWorkerConfig, readDatabaseUrl, readGranteePasswords, readWebhookConfig])
    expect(() => readIt(env)).toThrow(new RegExp(`^${name} is .+; unset it[^\n]+$`));
});

it.each([
  ["NODE_TLS_REJECT_UNAUTHORIZED", "1"],
  ["DEBUG", "express:*"],
  ["DEBUG", "0"],
  ["HOST", "::1"],
  ["HOST", "0.0.0.0"],
])("the configuration accepts %s=%s", (name, value) => {
  expect(readConfig({ ...REQUIRED, [name]: value })).toMatchObject(name === "HOST" ? { host: value } : {});
});

it("the configuration refuses a HOST that is no IP address", () => {
  expect(() => readConfig({ ...REQUIRED, HOST: "till.example.com" })).toThrow(/^HOST must be an IP address/);
});
