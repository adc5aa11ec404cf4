import { BlockList, isIP } from "node:net";
import { z } from "zod";
import { RESERVATION_SECONDS } from "./domain/hold.ts";

/** Signs reservation tokens when nothing else is configured. Public, so production refuses it. */
const DEVELOPMENT_TOKEN_SECRET = "development-only-reservation-token-secret";

/** The value of OPS_TOKEN that says: no dashboard, on purpose. */
const OPS_OFF = "off";

/** The queues that a worker process may work on. */
const QUEUES = ["redeem", "seal", "sweep"] as const;

const integer = (min: number, max: number) =>
  z.string().regex(/^\d+$/, "must be a whole number").pipe(z.coerce.number<string>().min(min).max(max));

const trustedProxies = z
  .string()
  .transform((text) => splitList(text))
  .refine(
    (entries) => entries.every(isAddressOrCidr),
    "must be a list of IP addresses and CIDRs, separated by commas, and never the whole world",
  );

const environment = z.object({
  NODE_ENV: z.string().default("development"),
  PORT: integer(0, 65_535).default(3000),
  BASE_URL: z
    .url({ protocol: /^https?$/, error: "must be an address like https://vouchers.example.com" })
    .refine((url) => !/[?#]/.test(url), "must have neither a query nor a fragment")
    .optional(),
  DATABASE_URL: z.url({
    protocol: /^postgres(ql)?$/,
    error: "must be an address like postgres://user:password@host:5432/database",
  }),
  REDIS_URL: z.url({ protocol: /^rediss?$/, error: "must be an address like redis://host:6379/0" }),
  RESERVATION_SECONDS: integer(1, 86_400).default(RESERVATION_SECONDS),
  RESERVATION_TOKEN_SECRET: z
    .string()
    .default(DEVELOPMENT_TOKEN_SECRET)
    .transform((text) => splitList(text))
    .refine(
      (secrets) => secrets.length > 0 && secrets.every((secret) => secret.length >= 16),
      "must be one or more secrets of at least 16 characters, separated by commas",
    ),
  REDEEM_WAIT_MS: integer(100, 60_000).default(10_000),
  RATE_LIMIT_RPS: integer(0, 1_000_000).default(200),
  MISS_LIMIT_PER_MINUTE: integer(0, 1_000_000).default(60),
  TRUST_PROXY: trustedProxies.default([]),
  LOG_LEVEL: z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]).default("info"),
  WORKER_CONCURRENCY: integer(1, 1000).default(64),
  WORKER_QUEUES: z
    .string()
    .default(QUEUES.join(","))
    .transform((text) => splitList(text))
    .pipe(z.array(z.enum(QUEUES)).min(1)),
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
  // Of OpenTelemetry's own variables only what decides whether it is loaded; the rest it reads itself.
  OTEL_SDK_DISABLED: z.string().optional(),
  OTEL_TRACES_EXPORTER: z.string().optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: z.string().optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: z.string().optional(),
  OTEL_SERVICE_NAME: z.string().optional(),
  OTEL_RESOURCE_ATTRIBUTES: z.string().optional(),
});

/** Where the keys that sign users' tokens are published, and what the tokens must say. */
export interface UserTokens {
  /** Null: nobody's tokens are good. */
  jwksUrl: string | null;
  issuer: string | null;
  audience: string | null;
}

/** Who may look at the queues, and whether they may change them. */
export interface Ops {
  /** Null: nobody, there is no dashboard. */
  token: string | null;
  writable: boolean;
}

/** Whether traces are sent, as OpenTelemetry's variables say. */
export interface TraceSettings {
  on: boolean;
  /** Whether the variables name the service. */
  serviceNamed: boolean;
}

/** What a process is told by its environment. Durations are milliseconds unless the name says otherwise. */
export interface Config {
  production: boolean;
  port: number;
  /** Without a trailing slash. */
  baseUrl: string;
  /** The path of `baseUrl`: what a proxy takes off before a request comes here. Empty when there is none. */
  basePath: string;
  databaseUrl: string;
  redisUrl: string;
  reservationSeconds: number;
  /** The first signs, all verify. */
  reservationTokenSecrets: string[];
  redeemWaitMs: number;
  /** Calls a second of one key in each class of routes; 0: no such limits, of keys or others. */
  rateLimitRps: number;
  /** Look-ups of codes that do not exist, per key; 0: no limit. */
  missLimitPerMinute: number;
  /** Addresses and CIDRs of proxies whose X-Forwarded-For counts. */
  trustProxy: string[];
  logLevel: string;
  workerConcurrency: number;
  /** How users' tokens are judged. */
  users: UserTokens;
  ops: Ops;
  workerQueues: (typeof QUEUES)[number][];
  sweepIntervalMs: number;
  /** Every chain is verified again within about this time. */
  chainCheckMs: number;
  /** Where the process's metrics are served; null: they are not measured. */
  metricsPort: number | null;
  traces: TraceSettings;
}

/** The environment cannot be used; `message` has one line per variable, naming it. */
export class ConfigError extends Error {}

/**
 * Reads the whole configuration from `env`. This file is the only reader of the environment.
 * @throws ConfigError naming every variable that is missing or wrong.
 */
export function readConfig(env: Record<string, string | undefined>): Config {
  const values = parse(environment, env);
  const production = values.NODE_ENV === "production";
  if (production && values.RESERVATION_TOKEN_SECRET.includes(DEVELOPMENT_TOKEN_SECRET)) {
    throw new ConfigError(
      "RESERVATION_TOKEN_SECRET is not set to a secret of its own, which NODE_ENV=production requires",
    );
  }
  const baseUrl = (values.BASE_URL ?? `http://localhost:${values.PORT}`).replace(/\/+$/, "");
  return {
    production,
    port: values.PORT,
    baseUrl,
    basePath: new URL(baseUrl).pathname.replace(/\/$/, ""),
    databaseUrl: values.DATABASE_URL,
    redisUrl: values.REDIS_URL,
    reservationSeconds: values.RESERVATION_SECONDS,
    reservationTokenSecrets: values.RESERVATION_TOKEN_SECRET,
    redeemWaitMs: values.REDEEM_WAIT_MS,
    rateLimitRps: values.RATE_LIMIT_RPS,
    missLimitPerMinute: values.MISS_LIMIT_PER_MINUTE,
    trustProxy: values.TRUST_PROXY,
    logLevel: values.LOG_LEVEL,
    workerConcurrency: values.WORKER_CONCURRENCY,
    users: {
      jwksUrl: values.AUTH_JWKS_URL ?? null,
      issuer: values.AUTH_ISSUER ?? null,
      audience: values.AUTH_AUDIENCE ?? null,
    },
    ops: {
      token: values.OPS_TOKEN === OPS_OFF ? null : (values.OPS_TOKEN ?? null),
      writable: values.OPS_WRITABLE === "true",
    },
    workerQueues: values.WORKER_QUEUES,
    sweepIntervalMs: values.SWEEP_INTERVAL_MS,
    chainCheckMs: values.CHAIN_CHECK_HOURS * 3_600_000,
    metricsPort: values.METRICS_PORT ?? null,
    traces: traceSettings(values),
  };
}

/** Traces are on when an exporter is named or an endpoint is, unless the SDK is disabled or the exporter is `none`. */
function traceSettings(values: z.output<typeof environment>): TraceSettings {
  const exporters = splitList(values.OTEL_TRACES_EXPORTER ?? "");
  const endpoint = values.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? values.OTEL_EXPORTER_OTLP_ENDPOINT;
  const disabled = values.OTEL_SDK_DISABLED?.trim().toLowerCase() === "true" || exporters.includes("none");
  return {
    on: !disabled && (exporters.length > 0 || endpoint !== undefined),
    serviceNamed:
      values.OTEL_SERVICE_NAME !== undefined || /(^|,)\s*service\.name\s*=/.test(values.OTEL_RESOURCE_ATTRIBUTES ?? ""),
  };
}

/**
 * Reads the whole configuration of an API process, which in production must be told who may see the dashboard.
 * @throws ConfigError naming every variable that is missing or wrong.
 */
export function readApiConfig(env: Record<string, string | undefined>): Config {
  const config = readConfig(env);
  if (config.production && !env.OPS_TOKEN) {
    throw new ConfigError(
      `OPS_TOKEN is not set, which NODE_ENV=production requires of an API process; ${OPS_OFF} runs it without a dashboard`,
    );
  }
  return config;
}

/**
 * Reads the database's address alone, for what needs nothing else.
 * @throws ConfigError when it is missing or wrong.
 */
export function readDatabaseUrl(env: Record<string, string | undefined>): string {
  return parse(environment.pick({ DATABASE_URL: true }), env).DATABASE_URL;
}

/** Reads what users' tokens must say, for what makes tokens. */
export function readTokenClaims(env: Record<string, string | undefined>): Pick<UserTokens, "issuer" | "audience"> {
  const claims = parse(environment.pick({ AUTH_ISSUER: true, AUTH_AUDIENCE: true }), env);
  return { issuer: claims.AUTH_ISSUER ?? null, audience: claims.AUTH_AUDIENCE ?? null };
}

const ROLE_PASSWORD = z
  .string()
  .regex(/^[\x21-\x7e]{16,}$/, "must be 16 or more visible ASCII characters")
  .optional();

/**
 * Reads the passwords that `voucherctl db roles` gives to the roles; null where none is given.
 * @throws ConfigError when one is too short or has other characters.
 */
export function readRolePasswords(
  env: Record<string, string | undefined>,
): Record<"pva_api" | "pva_admin", string | null> {
  const given = parse(z.object({ PVA_API_PASSWORD: ROLE_PASSWORD, PVA_ADMIN_PASSWORD: ROLE_PASSWORD }), env);
  return { pva_api: given.PVA_API_PASSWORD ?? null, pva_admin: given.PVA_ADMIN_PASSWORD ?? null };
}

/** Servers that the environment names. Null: none, and whoever may do so uses the embedded one. */
export interface GivenServers {
  databaseUrl: string | null;
  redisUrl: string | null;
}

/**
 * Reads which servers the environment names.
 * @throws ConfigError when an address is wrong.
 */
export function readGivenServers(env: Record<string, string | undefined>): GivenServers {
  const given = parse(environment.pick({ DATABASE_URL: true, REDIS_URL: true }).partial(), env);
  return { databaseUrl: given.DATABASE_URL ?? null, redisUrl: given.REDIS_URL ?? null };
}

function parse<Schema extends z.ZodType>(schema: Schema, env: Record<string, string | undefined>): z.output<Schema> {
  // An empty variable is an unset one, as compose files and shells leave them.
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const parsed = schema.safeParse(set);
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => {
    const name = String(issue.path[0]);
    return set[name] === undefined ? `${name} is not set` : `${name} ${sentence(issue.message)}`;
  });
  throw new ConfigError(lines.join("\n"));
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

function sentence(message: string): string {
  return message.charAt(0).toLowerCase() + message.slice(1);
}
