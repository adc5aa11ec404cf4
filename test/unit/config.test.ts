import { describe, expect, it } from "vitest";
import {
  ConfigError,
  readApiConfig,
  readConfig,
  readDatabaseUrl,
  readWebhookConfig,
  readWorkerConfig,
} from "../../src/config.ts";
import { environment } from "../../src/environment.ts";
import { parseRedisUrl } from "../../src/redis/addresses.ts";

type Environment = Record<string, string | undefined>;

const REQUIRED = { DATABASE_URL: "postgres://app:secret@db.internal:5432/vouchers", REDIS_URL: "redis://cache:6379/0" };
/** Values of CORS_ORIGINS that no browser sends as an origin, or that would let every page in. */
const HOSTILE_ORIGINS = [
  ...`* null , true shop.example //shop.example https:// https://* https://*.example https://shop.example/
    https://shop.example/path https://shop.example?x https://shop.example#x https://shop.example:443
    https://Shop.example https://user@shop.example https://shop.example\\evil.example https://bücher.example
    file:///etc/passwd ftp://shop.example javascript:alert(1) data:text/html,x
    https://shop.example;https://other.example https://shop.example,* https://shop.example,null`.split(/\s+/),
  ...["https://shop.example\r\nSet-Cookie: a=b", "https://shop .example", "https://shop.example https://other.example"],
];
const OWN_SECRET = "a secret of our own that is long enough";

function read(env: Environment = {}) {
  return readConfig({ ...REQUIRED, ...env });
}

/** The lines of the error that an environment stops the start with. */
function complaints(env: Environment, read: (env: Environment) => unknown = readConfig): string[] {
  try {
    read({ ...REQUIRED, ...env });
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split("\n");
    throw error;
  }
  return [];
}

it("the configuration of metrics measures nothing without METRICS_PORT, and takes a port", () => {
  expect(read().metricsPort).toBeNull();
  expect(read({ METRICS_PORT: "" }).metricsPort).toBeNull();
  expect(read({ METRICS_PORT: "9464" }).metricsPort).toBe(9464);
  expect(complaints({ METRICS_PORT: "nine" })).toEqual(["METRICS_PORT must be a whole number"]);
});

describe("the configuration of traces", () => {
  const endpoint = "http://collector:4318";

  it.each([
    { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint },
    { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint },
    { OTEL_TRACES_EXPORTER: "otlp" },
    { OTEL_TRACES_EXPORTER: "console" },
    { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: "false" },
  ])("the configuration of traces sends traces with %j", (env) => {
    expect(read(env).traces.on).toBe(true);
  });

  it.each([
    {},
    { OTEL_SERVICE_NAME: "vouchers" },
    { OTEL_EXPORTER_OTLP_ENDPOINT: "" },
    { OTEL_TRACES_EXPORTER: "none" },
    { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_EXPORTER: "none" },
    { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: "true" },
    { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: " TRUE " },
    { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: endpoint },
  ])("the configuration of traces sends no traces with %j", (env) => {
    expect(read(env).traces.on).toBe(false);
  });

  it("the configuration of traces leaves the service's name to the variables that give it one", () => {
    expect(read().traces.serviceNamed).toBe(false);
    expect(read({ OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=test" }).traces.serviceNamed).toBe(false);
    expect(read({ OTEL_SERVICE_NAME: "till" }).traces.serviceNamed).toBe(true);
    expect(read({ OTEL_RESOURCE_ATTRIBUTES: "a=b,service.name=till" }).traces.serviceNamed).toBe(true);
  });
});

it("the configuration needs the addresses of Postgres and Redis and has a default for everything else", () => {
  expect(readConfig(REQUIRED)).toMatchObject({
    production: false,
    port: 3000,
    baseUrl: "http://localhost:3000",
    databaseUrl: REQUIRED.DATABASE_URL,
    redisUrl: REQUIRED.REDIS_URL,
    queueShards: [1],
    workerShards: null,
    reservationSeconds: 900,
    redeemWaitMs: 10_000,
    rateLimitRps: 200,
    missLimitPerMinute: 60,
    trustProxy: [],
    logLevel: "info",
    workerConcurrency: 64,
    workerQueues: expect.arrayContaining(["redeem", "seal"]),
  });
  expect(read().reservationTokenSecrets).toHaveLength(1);
});

it("the configuration takes every value that it is given", () => {
  expect(
    read({
      NODE_ENV: "production",
      PORT: "8080",
      BASE_URL: "https://vouchers.example/api",
      DATABASE_URL: "postgresql://other/db",
      REDIS_URL: "rediss://other:6380/1",
      RESERVATION_SECONDS: "60",
      RESERVATION_TOKEN_SECRET: OWN_SECRET,
      REDEEM_WAIT_MS: "2500",
      RATE_LIMIT_RPS: "50",
      MISS_LIMIT_PER_MINUTE: "0",
      TRUST_PROXY: "10.0.0.0/8, 2001:db8::1",
      CORS_ORIGINS: "https://shop.example, http://localhost:5173,http://[::1]:8080",
      STOREFRONT_URL: "https://shop.example/r?c={code}",
      LOG_LEVEL: "warn",
      WORKER_CONCURRENCY: "8",
      WORKER_QUEUES: "seal",
    }),
  ).toMatchObject({
    production: true,
    port: 8080,
    baseUrl: "https://vouchers.example/api",
    databaseUrl: "postgresql://other/db",
    redisUrl: "rediss://other:6380/1",
    reservationSeconds: 60,
    reservationTokenSecrets: [OWN_SECRET],
    redeemWaitMs: 2_500,
    rateLimitRps: 50,
    missLimitPerMinute: 0,
    trustProxy: ["10.0.0.0/8", "2001:db8::1"],
    storefrontUrl: "https://shop.example/r?c={code}",
    corsOrigins: ["https://shop.example", "http://localhost:5173", "http://[::1]:8080"],
    logLevel: "warn",
    workerConcurrency: 8,
    workerQueues: ["seal"],
  });
});

it("the configuration trusts no user's token without configured keys, and checks issuer and audience where they are configured", () => {
  expect(read().users).toEqual({ jwksUrl: null, issuer: null, audience: null });
  const users = {
    jwksUrl: "https://login.example/jwks.json",
    issuer: "https://login.example/",
    audience: "vouchers",
  };
  const { jwksUrl, issuer, audience } = users;
  expect(read({ AUTH_JWKS_URL: jwksUrl, AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience }).users).toEqual(users);
  expect(read({ AUTH_JWKS_URL: "file:///keys.json" }).users.jwksUrl).toBe("file:///keys.json");
});

it("the configuration takes an empty variable for one that is not set", () => {
  const optional = Object.keys(environment.shape).filter((name) => !(name in REQUIRED));
  const empty = Object.fromEntries(optional.map((name) => [name, ""]));
  expect(read(empty)).toEqual(readConfig(REQUIRED));
  expect(complaints({ DATABASE_URL: "" })).toEqual(["DATABASE_URL is not set"]);
});

it("the configuration ignores variables that it does not know", () => {
  expect(read({ PATH: "/bin", LC_ALL: "C", PORTS: "x" })).toEqual(readConfig(REQUIRED));
});

it("the configuration derives the base address from the port and drops slashes at its end", () => {
  expect(read({ PORT: "8080" }).baseUrl).toBe("http://localhost:8080");
  expect(read({ BASE_URL: "https://vouchers.example/" }).baseUrl).toBe("https://vouchers.example");
  expect(read({ BASE_URL: "https://vouchers.example/api//" }).baseUrl).toBe("https://vouchers.example/api");
});

it("the configuration takes the path in front of every address of a page from the base address", () => {
  expect(read().basePath).toBe("");
  expect(read({ BASE_URL: "https://vouchers.example/" }).basePath).toBe("");
  expect(read({ BASE_URL: "https://vouchers.example/eu/api/" }).basePath).toBe("/eu/api");
});

it("the configuration reads lists with or without blanks and drops empty entries", () => {
  expect(read({ TRUST_PROXY: " 10.0.0.1 ,,10.0.0.2," }).trustProxy).toEqual(["10.0.0.1", "10.0.0.2"]);
  expect(read({ WORKER_QUEUES: "seal , redeem" }).workerQueues).toEqual(["seal", "redeem"]);
});

it("the configuration keeps the order of token secrets: the first signs", () => {
  const secrets = ["the newest secret of all", "the secret before that"];
  expect(read({ RESERVATION_TOKEN_SECRET: secrets.join(", ") }).reservationTokenSecrets).toEqual(secrets);
});

it.each(["DATABASE_URL", "REDIS_URL"])("the configuration does not start without %s", (name) => {
  expect(complaints({ [name]: undefined })).toEqual([`${name} is not set`]);
});

it.each([
  "postgres://a,b/vouchers",
  "postgres://app:pa55@a:5432,b:5432/vouchers",
  "postgresql:///vouchers?host=a,b",
  "postgres://a/vouchers?sslmode=require&host=a%2Cb",
])("the configuration refuses the several hosts of %s, and says what to give instead", (url) => {
  expect(complaints({ DATABASE_URL: url })).toEqual([
    "DATABASE_URL names several hosts, which the service does not choose between; give one address that always leads to the primary, such as a proxy's",
  ]);
});

it("the configuration accepts a comma in the password of DATABASE_URL", () => {
  const url = "postgres://app:a,b@db.internal/vouchers";
  expect(read({ DATABASE_URL: url }).databaseUrl).toBe(url);
});

it.each<[name: string, ...values: string[]]>([
  // A port of blanks must not become port 0, which is any port.
  ["PORT", " ", "http", "-1", "65536", "80.5", "NaN", "Infinity", "3000;", "true"],
  [
    "BASE_URL",
    "vouchers.example",
    "/api",
    "ftp://vouchers.example",
    "javascript:alert(1)",
    "http://",
    "http:x",
    "https://v.example/?tenant=1",
    "https://v.example/#top",
  ],
  ["DATABASE_URL", "localhost", "mysql://db/vouchers", "http://db/vouchers", "postgres"],
  ["AUTH_JWKS_URL", "login.example", "/jwks.json", "ftp://login.example/jwks.json", "data:application/json,{}"],
  ["REDIS_URL", "localhost:6379", "http://cache", "postgres://db/x"],
  ["RESERVATION_SECONDS", "0", "-900", "86401", "15m", "0.5"],
  ["RESERVATION_TOKEN_SECRET", "short", ",", `${OWN_SECRET},short`, "123456789012345"],
  ["CORS_ORIGINS", ...HOSTILE_ORIGINS],
  ["REDEEM_WAIT_MS", "99", "60001", "10s", "-1"],
  ["RATE_LIMIT_RPS", "-1", "1000001", "off", "2.5"],
  ["MISS_LIMIT_PER_MINUTE", "-1", "1000001", "none", "0.5"],
  ["LOG_LEVEL", "verbose", "INFO", "30"],
  ["WORKER_CONCURRENCY", "0", "1001", "many", "1.5"],
  ["OPS_TOKEN", "fifteen letters", "OFF", "on"],
  ["OPS_WRITABLE", "1", "yes", "TRUE"],
  ["OPS_DATABASE_URL", "mysql://db/vouchers"],
  [
    "STOREFRONT_URL",
    "https://shop.example/r",
    "http://shop.example/{code}",
    "https://{code}.example/",
    "https://[/{code}",
    "javascript:alert({code})",
  ],
  ["WORKER_QUEUES", "redeem,mail", ",", "all", "redeem seal"],
])("the configuration does not start with a bad %s, and names it", (name, ...values) => {
  for (const value of values) {
    const lines = complaints({ [name]: value });
    expect(lines.length, `${name}=${value}`).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(new RegExp(`^${name} .{4}`));
  }
});

it.each([
  ...`true 1 * loopback uniquelocal 10.0.0.0/33 10.0.0.0/-1 10.0.0.0/ 10.0.0.0/8/8 10.0.0.0/a 2001:db8::/129 10.0.0
      10.0.0.0-10.0.0.9 proxy.internal 10.0.0.1,true`.split(/\s+/),
  "10.0.0.1 10.0.0.2",
])("the configuration trusts no proxy that is not an address or a CIDR: TRUST_PROXY=%s", (value) => {
  expect(complaints({ TRUST_PROXY: value })).toEqual([expect.stringMatching(/^TRUST_PROXY .*(address|CIDR)/)]);
});

it.each(
  "10.0.0.1 10.0.0.0/8 2001:db8::1 2001:db8::/32 ::ffff:10.0.0.1 192.0.2.1/32 ::1/128".split(" "),
)("the configuration trusts an address or a CIDR: TRUST_PROXY=%s", (value) => {
  expect(read({ TRUST_PROXY: value }).trustProxy).toEqual([value]);
});

it.each(
  "0.0.0.0/0 ::/0 10.0.0.1,0.0.0.0/0".split(" "),
)("the configuration does not trust the whole world as a proxy, which true would mean: TRUST_PROXY=%s", (value) => {
  expect(complaints({ TRUST_PROXY: value })).toEqual([expect.stringMatching(/^TRUST_PROXY /)]);
});

it("the configuration names every bad variable at once, each on a line of its own", () => {
  const lines = complaints({
    PORT: "http",
    REDIS_URL: undefined,
    DATABASE_URL: "mysql://db",
    TRUST_PROXY: "true",
    LOG_LEVEL: "verbose",
    RESERVATION_TOKEN_SECRET: "short",
  });
  expect(lines.map((line) => line.split(" ")[0]).sort()).toEqual(
    "DATABASE_URL LOG_LEVEL PORT REDIS_URL RESERVATION_TOKEN_SECRET TRUST_PROXY".split(" "),
  );
  expect(lines).toContain("REDIS_URL is not set");
});

it("the configuration says nothing of a secret's or an address's value when it is bad", () => {
  const lines = complaints({ RESERVATION_TOKEN_SECRET: "s3cr3t,s3cr3t", DATABASE_URL: "mysql://app:pa55word@db/x" });
  expect(lines).toHaveLength(2);
  expect(lines.join()).not.toMatch(/s3cr3t|pa55word/);
});

describe("the development secret", () => {
  const development = readConfig(REQUIRED).reservationTokenSecrets[0] ?? "";

  it("the development secret is refused in production, set or left to its default, first or last in the list", () => {
    for (const value of [undefined, "", development, `${OWN_SECRET},${development}`, `${development},${OWN_SECRET}`]) {
      for (const readOf of [readApiConfig, readWorkerConfig]) {
        const lines = complaints({ NODE_ENV: "production", RESERVATION_TOKEN_SECRET: value }, readOf);
        expect(lines).toEqual([expect.stringMatching(/^RESERVATION_TOKEN_SECRET .*production/)]);
      }
    }
  });

  it("the development secret is enough in production for a worker that does not redeem", () => {
    expect(complaints({ NODE_ENV: "production", WORKER_QUEUES: "seal" }, readWorkerConfig)).toEqual([]);
  });

  it("the development secret gives way to a secret of one's own in production, and is enough elsewhere", () => {
    const production = read({ NODE_ENV: "production", RESERVATION_TOKEN_SECRET: OWN_SECRET });
    expect(production).toMatchObject({ production: true, reservationTokenSecrets: [OWN_SECRET] });
    for (const environment of ["development", "test", undefined]) {
      expect(read({ NODE_ENV: environment })).toMatchObject({
        production: false,
        reservationTokenSecrets: [development],
      });
    }
  });
});

describe("the dashboard's token", () => {
  const production = { ...REQUIRED, NODE_ENV: "production", RESERVATION_TOKEN_SECRET: OWN_SECRET };

  it("the dashboard's token opens a dashboard that changes nothing, unless told that it may", () => {
    expect(read().ops).toMatchObject({ token: null, writable: false });
    expect(read({ OPS_TOKEN: "sixteen letters!" }).ops).toMatchObject({ token: "sixteen letters!", writable: false });
    expect(read({ OPS_TOKEN: OWN_SECRET, OPS_WRITABLE: "true" }).ops).toMatchObject({
      token: OWN_SECRET,
      writable: true,
    });
    const OPS_DATABASE_URL = "postgres://pva_admin@db.internal/vouchers";
    expect(read().ops.databaseUrl).toBe(read().databaseUrl);
    expect(read({ OPS_DATABASE_URL }).ops.databaseUrl).toBe(OPS_DATABASE_URL);
    expect(read({ OPS_WRITABLE: "false" }).ops.writable).toBe(false);
  });

  it("the dashboard's token is required in production of an API process alone, where off is a value", () => {
    for (const OPS_TOKEN of [undefined, ""]) {
      expect(() => readApiConfig({ ...production, OPS_TOKEN })).toThrow(ConfigError);
      expect(() => readApiConfig({ ...production, OPS_TOKEN })).toThrow(/^OPS_TOKEN is not set/);
      expect(readConfig({ ...production, OPS_TOKEN }).ops.token).toBeNull();
      expect(readApiConfig({ ...REQUIRED, OPS_TOKEN }).ops.token).toBeNull();
    }
    expect(readApiConfig({ ...production, OPS_TOKEN: "off" }).ops.token).toBeNull();
    expect(readApiConfig({ ...production, OPS_TOKEN: OWN_SECRET }).ops.token).toBe(OWN_SECRET);
  });

  it("the dashboard's token is not said when it is bad", () => {
    expect(complaints({ OPS_TOKEN: "s3cr3t" })).toEqual([expect.not.stringContaining("s3cr3t")]);
  });
});

it("readDatabaseUrl reads the database's address and needs nothing else", () => {
  expect(readDatabaseUrl({ DATABASE_URL: REQUIRED.DATABASE_URL, PORT: "http" })).toBe(REQUIRED.DATABASE_URL);
});

it.each([undefined, "", "localhost", "mysql://db/x"])("readDatabaseUrl names DATABASE_URL when it is %j", (value) => {
  expect(() => readDatabaseUrl({ DATABASE_URL: value })).toThrow(ConfigError);
  expect(() => readDatabaseUrl({ DATABASE_URL: value })).toThrow(/^DATABASE_URL /);
});

describe("REDIS_URL", () => {
  const hosts = (url: string) => parseRedisUrl(url).map(({ host }) => host);

  it("REDIS_URL takes one address as it is, also with commas in the password", () => {
    expect(hosts("redis://user:a,b@cache:6380/3?family=6")).toEqual(["cache:6380"]);
    expect(read({ REDIS_URL: "rediss://:secret@cache/1" }).redisUrl).toBe("rediss://:secret@cache/1");
  });

  it.each([
    "redis://a:7001,b:7002,c",
    "redis://a:7001, redis://b:7002 ,redis://c",
    "redis://a:7001,b:7002,c/0",
  ])("REDIS_URL takes nodes of a cluster as %s", (url) => {
    expect(hosts(read({ REDIS_URL: url }).redisUrl)).toEqual(["a:7001", "b:7002", "c"]);
  });

  it("REDIS_URL gives every node the user and the password of the first", () => {
    const urls = parseRedisUrl("rediss://app:s%40cret@a,b:7002");
    expect(urls.map(({ href }) => href)).toEqual(["rediss://app:s%40cret@a", "rediss://app:s%40cret@b:7002"]);
  });

  it.each([
    ["redis://a,rediss://b", /^REDIS_URL mixes redis: and rediss:/],
    ["redis://x:1@a,redis://x:2@b", /^REDIS_URL has addresses with different users or passwords/],
    ["redis://x@a,redis://b", /^REDIS_URL has addresses with different users or passwords/],
    ["redis://a,b/1", /^REDIS_URL names database 1; a Redis Cluster has only database 0/],
    ["redis://a,b?family=6", /^REDIS_URL has parameters/],
    ["redis://a,,b", /^REDIS_URL has an address without a host/],
    ["redis://a,http://b", /^REDIS_URL /],
  ])("REDIS_URL refuses %s in a sentence", (url, sentence) => {
    expect(() => read({ REDIS_URL: url })).toThrow(sentence);
    expect(() => read({ REDIS_URL: url })).toThrow(ConfigError);
  });
});

it("QUEUE_SHARDS and WORKER_SHARDS take one number of shards, two while it changes, and a list of shards", () => {
  expect(read({ QUEUE_SHARDS: "6", WORKER_SHARDS: "0,2" })).toMatchObject({ queueShards: [6], workerShards: [0, 2] });
  expect(read({ QUEUE_SHARDS: "4,6", WORKER_SHARDS: "4, 5" })).toMatchObject({
    queueShards: [4, 6],
    workerShards: [4, 5],
  });
});

it.each(["0", "257", "2,2", "1,2,3", "many", "-1"])("QUEUE_SHARDS is refused as %j", (value) => {
  expect(() => read({ QUEUE_SHARDS: value })).toThrow(/^QUEUE_SHARDS /);
});

it.each(["6", "0,6", "x", "-1"])("WORKER_SHARDS is refused as %j with six shards", (value) => {
  expect(() => read({ QUEUE_SHARDS: "6,4", WORKER_SHARDS: value })).toThrow(/^WORKER_SHARDS /);
});

it("webhooks are off without WEBHOOK_SECRET, which has at least 32 characters", () => {
  expect(read({}).webhooks).toEqual({ secret: null, allowPrivate: false });
  expect(read({ WEBHOOK_SECRET: "s".repeat(32) }).webhooks.secret).toBe("s".repeat(32));
  expect(complaints({ WEBHOOK_SECRET: "s".repeat(31) })).toEqual([expect.stringMatching(/^WEBHOOK_SECRET .*32/)]);
});

it("webhooks go to private addresses only outside of production", () => {
  const open = { ...REQUIRED, RESERVATION_TOKEN_SECRET: OWN_SECRET, WEBHOOK_ALLOW_PRIVATE: "true" };
  expect(readConfig(open).webhooks.allowPrivate).toBe(true);
  expect(() => readConfig({ ...open, NODE_ENV: "production" })).toThrow(/^WEBHOOK_ALLOW_PRIVATE is true/);
  expect(() => readWebhookConfig({ ...open, NODE_ENV: "production" })).toThrow(ConfigError);
});

it("webhooks need the secret in a worker process that serves their queue alone", () => {
  const worker = { ...REQUIRED, RESERVATION_TOKEN_SECRET: OWN_SECRET, WORKER_QUEUES: "webhook" };
  expect(() => readWorkerConfig(worker)).toThrow(/^WEBHOOK_SECRET is not set/);
  expect(readWorkerConfig({ ...worker, WEBHOOK_SECRET: OWN_SECRET.padEnd(32, "x") }).workerQueues).toEqual(["webhook"]);
});
