import { BlockList, isIP } from "node:net";
import { z } from "zod";
import { isKeyName } from "../packages/tlog/src/note.ts";
import { RESERVATION_SECONDS } from "./domain/reservation.ts";
import { QUEUE_NAMES } from "./queues/catalog.ts";
import { SHARDS_MAX } from "./queues/shards.ts";
import { BadRedisUrl, parseRedisUrl } from "./redis/addresses.ts";

/** The default secret for reservation tokens. It is public, so production refuses it. */
const DEVELOPMENT_TOKEN_SECRET = "development-only-reservation-token-secret";

/** The value of OPS_TOKEN that turns the operator pages and the queue dashboard off. */
const OPS_OFF = "off";

const integer = (min: number, max: number) =>
  z.string().regex(/^\d+$/, "must be a whole number").pipe(z.coerce.number<string>().min(min).max(max));

const trustedProxies = z
  .string()
  .transform(splitList)
  .refine(
    (entries) => entries.every(isAddressOrCidr),
    "must be a comma-separated list of IP addresses and CIDRs other than /0",
  );

const origins = z
  .string()
  .transform(splitList)
  .refine(
    (entries) => entries.length > 0 && entries.every(isOrigin),
    "must be a comma-separated list of origins as browsers send them, such as https://shop.example.com: in lower case, without a path, a default port, * or null",
  );

const logEnvironment = z.object({
  LOG_KEY_FILE: z.string().optional(),
  LOG_ORIGIN: z.string().refine(isKeyName, "must be a name like vouchers.example.com/log").optional(),
  LOG_ANCHOR: z
    .string()
    .transform(splitList)
    .refine((entries) => entries.every((entry) => /^file:\/./.test(entry)), "must be like file:/absolute/path")
    .transform((entries) => entries.map((entry) => entry.slice("file:".length)))
    .default([]),
  LOG_POLICY: z.string().optional(),
  LOG_INTERVAL_MS: integer(100, 600_000).default(1_000),
});

const webhookEnvironment = z.object({
  NODE_ENV: z.string().default("development"),
  WEBHOOK_SECRET: z.string().min(32, "must be at least 32 characters long").optional(),
  WEBHOOK_ALLOW_PRIVATE: z.enum(["true", "false"]).default("false"),
});

const environment = z.object({
  PORT: integer(0, 65_535).default(3000),
  BASE_URL: z
    .url({ protocol: /^https?$/, error: "must be an address like https://vouchers.example.com" })
    .refine((url) => !/[?#]/.test(url), "must have neither a query nor a fragment")
    .optional(),
  DATABASE_URL: z
    .string()
    .refine((url) => !namesSeveralHosts(url), {
      error:
        "names several hosts, which the service does not choose between; give one address that always leads to the primary, such as a proxy's",
      abort: true,
    })
    .pipe(
      z.url({
        protocol: /^postgres(ql)?$/,
        error: "must be an address like postgres://user:password@host:5432/database",
      }),
    ),
  REDIS_URL: z.string().superRefine((text, issues) => {
    try {
      parseRedisUrl(text);
    } catch (error) {
      if (!(error instanceof BadRedisUrl)) throw error;
      issues.addIssue(error.message);
    }
  }),
  QUEUE_SHARDS: z
    .string()
    .default("1")
    .transform(splitList)
    .pipe(z.array(integer(1, SHARDS_MAX)).min(1).max(2))
    .refine((counts) => new Set(counts).size === counts.length, "must be one number, or two different ones"),
  WORKER_SHARDS: z
    .string()
    .transform(splitList)
    .pipe(z.array(integer(0, SHARDS_MAX - 1)).min(1))
    .optional(),
  RESERVATION_SECONDS: integer(1, 86_400).default(RESERVATION_SECONDS),
  RESERVATION_TOKEN_SECRET: z
    .string()
    .default(DEVELOPMENT_TOKEN_SECRET)
    .transform(splitList)
    .refine(
      (secrets) => secrets.length > 0 && secrets.every((secret) => secret.length >= 16),
      "must be one or more secrets of at least 16 characters, separated by commas",
    ),
  REDEEM_WAIT_MS: integer(100, 60_000).default(10_000),
  RATE_LIMIT_RPS: integer(0, 1_000_000).default(200),
  MISS_LIMIT_PER_MINUTE: integer(0, 1_000_000).default(60),
  TRUST_PROXY: trustedProxies.default([]),
  CORS_ORIGINS: origins.default([]),
  LOG_LEVEL: z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]).default("info"),
  WORKER_CONCURRENCY: integer(1, 1000).default(64),
  WORKER_QUEUES: z
    .string()
    .default(QUEUE_NAMES.join(","))
    .transform(splitList)
    .pipe(z.array(z.enum(QUEUE_NAMES)).min(1)),
  AUTH_JWKS_URL: z
    .url({ protocol: /^(https?|file)$/, error: "must be an address that begins with https:, http: or file:" })
    .optional(),
  AUTH_ISSUER: z.string().optional(),
  AUTH_AUDIENCE: z.string().optional(),
  OPS_TOKEN: z
    .string()
    .refine((token) => token === OPS_OFF || token.length >= 16, `must be at least 16 characters long, or ${OPS_OFF}`)
    .optional(),
  OPS_WRITABLE: z.enum(["true", "false"]).default("false"),
  SWEEP_INTERVAL_MS: integer(100, 600_000).default(5_000),
  CHAIN_CHECK_HOURS: integer(1, 8_760).default(168),
  METRICS_PORT: integer(0, 65_535).optional(),
  ...logEnvironment.shape,
  ...webhookEnvironment.shape,
  // The OpenTelemetry variables that decide whether to load it and to set the service's name. OpenTelemetry reads these and others itself.
  OTEL_SDK_DISABLED: z.string().optional(),
  OTEL_TRACES_EXPORTER: z.string().optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: z.string().optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: z.string().optional(),
  OTEL_SERVICE_NAME: z.string().optional(),
  OTEL_RESOURCE_ATTRIBUTES: z.string().optional(),
});

/** Webhooks of partners. */
export interface WebhookConfig {
  /** The secret that the endpoints' secrets derive from. Null: this deployment has no webhooks. */
  secret: string | null;
  /** Requests may go to any address and port, also without TLS. Never in production. */
  allowPrivate: boolean;
}

/** The transparency log. */
export interface LogConfig {
  /** The file with the keys that sign checkpoints. Null: this process does not run the sequencer. */
  keyFile: string | null;
  /** The name that the key must have; null accepts any. */
  origin: string | null;
  /** Files in which the log's worker keeps the last checkpoint. */
  anchors: string[];
  /** The file with the policy; null requires no witness. */
  policyFile: string | null;
  intervalMs: number;
}

type Environment = Record<string, string | undefined>;

/** The environment is invalid. `message` has one line per problem, which starts with the variable's name. */
export class ConfigError extends Error {}

/** Reads and validates a process's configuration. @throws ConfigError when a variable is missing or invalid. */
export function readConfig(env: Environment) {
  const values = parse(environment, env);
  const production = values.NODE_ENV === "production";
  if (production && values.RESERVATION_TOKEN_SECRET.includes(DEVELOPMENT_TOKEN_SECRET)) {
    throw new ConfigError(
      "RESERVATION_TOKEN_SECRET is not set to a private secret, which NODE_ENV=production requires",
    );
  }
  const shardsMax = Math.max(...values.QUEUE_SHARDS);
  const unknown = values.WORKER_SHARDS?.find((shard) => shard >= shardsMax);
  if (unknown !== undefined) {
    throw new ConfigError(
      `WORKER_SHARDS names shard ${unknown}, but the ${shardsMax} shards of QUEUE_SHARDS are numbered from 0 to ${shardsMax - 1}`,
    );
  }
  const baseUrl = baseUrlOf(values);
  return {
    production,
    port: values.PORT,
    /** Without a trailing slash. */
    baseUrl,
    /** The path of `baseUrl`, which a proxy removes from requests. Empty when there is none. */
    basePath: new URL(baseUrl).pathname.replace(/\/$/, ""),
    databaseUrl: values.DATABASE_URL,
    redisUrl: values.REDIS_URL,
    /** How many shards each queue has. Two numbers while this is being changed: jobs are added to the first, workers serve both. */
    queueShards: values.QUEUE_SHARDS as [number, ...number[]],
    reservationSeconds: values.RESERVATION_SECONDS,
    /** New tokens are signed with the first secret. Tokens of every secret are accepted. */
    reservationTokenSecrets: values.RESERVATION_TOKEN_SECRET,
    redeemWaitMs: values.REDEEM_WAIT_MS,
    /** A key's limit in calls per second, for reads and for changes separately. The other limits per second derive from it. 0 turns them all off. */
    rateLimitRps: values.RATE_LIMIT_RPS,
    /** Look-ups of unknown codes per minute and key. 0 turns the limit off. */
    missLimitPerMinute: values.MISS_LIMIT_PER_MINUTE,
    /** Addresses and CIDRs of proxies whose X-Forwarded-For is trusted. */
    trustProxy: values.TRUST_PROXY,
    /** Origins whose pages may call the marketplace and the public routes. */
    corsOrigins: values.CORS_ORIGINS,
    logLevel: values.LOG_LEVEL,
    workerConcurrency: values.WORKER_CONCURRENCY,
    /** How users' tokens are verified. If `jwksUrl` is null, every token is refused. */
    users: {
      jwksUrl: values.AUTH_JWKS_URL ?? null,
      issuer: values.AUTH_ISSUER ?? null,
      audience: values.AUTH_AUDIENCE ?? null,
    },
    /** The operator pages and the queue dashboard: their password, null when they are off, and whether they may change anything. */
    ops: {
      token: values.OPS_TOKEN === OPS_OFF ? null : (values.OPS_TOKEN ?? null),
      writable: values.OPS_WRITABLE === "true",
    },
    workerQueues: values.WORKER_QUEUES,
    /** The shards that a worker process serves. Null means all. */
    workerShards: values.WORKER_SHARDS ?? null,
    sweepIntervalMs: values.SWEEP_INTERVAL_MS,
    /** The sweeper verifies every chain once in about this time. */
    chainCheckMs: values.CHAIN_CHECK_HOURS * 3_600_000,
    /** The port of the metrics endpoint. Null turns metrics off. */
    metricsPort: values.METRICS_PORT ?? null,
    transparencyLog: logConfig(values),
    webhooks: webhookConfig(values),
    traces: traceSettings(values),
  };
}

function logConfig(values: z.output<typeof logEnvironment>): LogConfig {
  return {
    keyFile: values.LOG_KEY_FILE ?? null,
    origin: values.LOG_ORIGIN ?? null,
    anchors: values.LOG_ANCHOR,
    policyFile: values.LOG_POLICY ?? null,
    intervalMs: values.LOG_INTERVAL_MS,
  };
}

function webhookConfig(values: z.output<typeof webhookEnvironment>): WebhookConfig {
  const allowPrivate = values.WEBHOOK_ALLOW_PRIVATE === "true";
  if (allowPrivate && values.NODE_ENV === "production") {
    throw new ConfigError("WEBHOOK_ALLOW_PRIVATE is true, which NODE_ENV=production refuses");
  }
  return { secret: values.WEBHOOK_SECRET ?? null, allowPrivate };
}

/** The configuration of a process. Durations are milliseconds unless the name says otherwise. */
export type Config = ReturnType<typeof readConfig>;

function baseUrlOf({ BASE_URL, PORT }: Pick<z.output<typeof environment>, "BASE_URL" | "PORT">): string {
  return (BASE_URL ?? `http://localhost:${PORT}`).replace(/\/+$/, "");
}

/** Traces are on when an exporter or an endpoint is set, unless the SDK is disabled or the exporter is `none`. */
function traceSettings(values: z.output<typeof environment>) {
  const exporters = splitList(values.OTEL_TRACES_EXPORTER ?? "");
  const endpoint = values.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? values.OTEL_EXPORTER_OTLP_ENDPOINT;
  const disabled = values.OTEL_SDK_DISABLED?.trim().toLowerCase() === "true" || exporters.includes("none");
  return {
    on: !disabled && (exporters.length > 0 || endpoint !== undefined),
    /** Whether the variables set the service's name. */
    serviceNamed:
      values.OTEL_SERVICE_NAME !== undefined || /(^|,)\s*service\.name\s*=/.test(values.OTEL_RESOURCE_ATTRIBUTES ?? ""),
  };
}

/** As {@link readConfig}, for an API process, which requires OPS_TOKEN in production. */
export function readApiConfig(env: Environment): Config {
  const config = readConfig(env);
  if (config.production && !env.OPS_TOKEN) {
    throw new ConfigError(
      `OPS_TOKEN is not set, which NODE_ENV=production requires of an API process; ${OPS_OFF} runs it without a dashboard`,
    );
  }
  return config;
}

/**
 * Reads the configuration of a worker process. If its only queue is `log`, LOG_KEY_FILE must be set. If it is `webhook`,
 * WEBHOOK_SECRET must be set.
 * @throws ConfigError when a variable is missing or invalid.
 */
export function readWorkerConfig(env: Environment): Config {
  const config = readConfig(env);
  if (config.transparencyLog.keyFile === null && config.workerQueues.every((queue) => queue === "log")) {
    throw new ConfigError("LOG_KEY_FILE is not set, which WORKER_QUEUES=log requires");
  }
  if (config.webhooks.secret === null && config.workerQueues.every((queue) => queue === "webhook")) {
    throw new ConfigError("WEBHOOK_SECRET is not set, which WORKER_QUEUES=webhook requires");
  }
  return config;
}

/** Reads only the log's variables. @throws ConfigError naming each bad variable. */
export function readLogConfig(env: Environment): LogConfig {
  return logConfig(parse(logEnvironment, env));
}

/** Reads only the webhooks' variables. @throws ConfigError naming each bad variable. */
export function readWebhookConfig(env: Environment): WebhookConfig {
  return webhookConfig(parse(webhookEnvironment, env));
}

/** Reads only the database's address. @throws ConfigError when it is missing or invalid. */
export function readDatabaseUrl(env: Environment): string {
  return parse(environment.pick({ DATABASE_URL: true }), env).DATABASE_URL;
}

/** Reads only the service's public address. @throws ConfigError when it is invalid. */
export function readBaseUrl(env: Environment): string {
  return baseUrlOf(parse(environment.pick({ BASE_URL: true, PORT: true }), env));
}

/** Reads only QUEUE_SHARDS. @throws ConfigError when it is invalid. */
export function readQueueShards(env: Environment): Config["queueShards"] {
  return parse(environment.pick({ QUEUE_SHARDS: true }), env).QUEUE_SHARDS as Config["queueShards"];
}

/** Reads only the issuer and the audience that users' tokens must name. */
export function readTokenClaims(env: Environment): Pick<Config["users"], "issuer" | "audience"> {
  const claims = parse(environment.pick({ AUTH_ISSUER: true, AUTH_AUDIENCE: true }), env);
  return { issuer: claims.AUTH_ISSUER ?? null, audience: claims.AUTH_AUDIENCE ?? null };
}

const rolePassword = z
  .string()
  .regex(/^[\x21-\x7e]{16,}$/, "must be 16 or more visible ASCII characters")
  .nullable()
  .default(null);

/**
 * Reads the passwords that `voucherctl db roles` sets for the roles. Null sets none.
 * @throws ConfigError when a password is too short or has invalid characters.
 */
export function readRolePasswords(env: Environment): Record<"pva_api" | "pva_log" | "pva_admin", string | null> {
  const passwords = z.object({
    PVA_API_PASSWORD: rolePassword,
    PVA_LOG_PASSWORD: rolePassword,
    PVA_ADMIN_PASSWORD: rolePassword,
  });
  const given = parse(passwords, env);
  return { pva_api: given.PVA_API_PASSWORD, pva_log: given.PVA_LOG_PASSWORD, pva_admin: given.PVA_ADMIN_PASSWORD };
}

/** Servers that the environment names. Null means the embedded server, but a command with DATABASE_URL and without REDIS_URL uses no Redis. */
export interface GivenServers {
  databaseUrl: string | null;
  redisUrl: string | null;
}

/** @throws ConfigError when an address is invalid. */
export function readGivenServers(env: Environment): GivenServers {
  const given = parse(environment.pick({ DATABASE_URL: true, REDIS_URL: true }).partial(), env);
  return { databaseUrl: given.DATABASE_URL ?? null, redisUrl: given.REDIS_URL ?? null };
}

function parse<Schema extends z.ZodType>(schema: Schema, env: Environment): z.output<Schema> {
  // Compose files and shells pass unset variables as empty ones.
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const parsed = schema.safeParse(set);
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => {
    const name = String(issue.path[0]);
    return set[name] === undefined ? `${name} is not set` : `${name} ${startLowerCase(issue.message)}`;
  });
  throw new ConfigError(lines.join("\n"));
}

/** Whether an address of Postgres has a list of hosts, in its authority or in the parameter `host` or `port`. */
function namesSeveralHosts(url: string): boolean {
  const [, authority = "", query = ""] = /^postgres(?:ql)?:\/\/([^/?#]*)[^?#]*(.*)$/.exec(url) ?? [];
  return authority.slice(authority.lastIndexOf("@") + 1).includes(",") || /[?&](host|port)=[^&]*(,|%2c)/i.test(query);
}

function splitList(text: string): string[] {
  return text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}

function isAddressOrCidr(entry: string): boolean {
  const [address = "", bits, ...rest] = entry.split("/");
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  if (bits === undefined) return true;
  if (Number(bits) === 0) return false;
  try {
    new BlockList().addSubnet(address, /^\d+$/.test(bits) ? Number(bits) : -1, version === 6 ? "ipv6" : "ipv4");
    return true;
  } catch {
    return false;
  }
}

/** Whether a text is an http origin in the one spelling that browsers send. `URL` accepts wildcards in host names. */
function isOrigin(entry: string): boolean {
  return /^https?:\/\/[^*]+$/.test(entry) && URL.canParse(entry) && new URL(entry).origin === entry;
}

function startLowerCase(message: string): string {
  return message.charAt(0).toLowerCase() + message.slice(1);
}
