import { BlockList, isIP } from "node:net";
import { z } from "zod";
import { isKeyName } from "../packages/tlog/src/note.ts";
import { RESERVATION_SECONDS } from "./domain/reservation.ts";
import { QUEUE_NAMES } from "./queues/catalog.ts";
import { SHARDS_MAX } from "./queues/shards.ts";
import { BadRedisUrl, parseRedisUrl } from "./redis/addresses.ts";

/** The default secret for reservation tokens. It is public, so production refuses it. */
export const DEVELOPMENT_TOKEN_SECRET = "development-only-reservation-token-secret";

/** The value of OPS_TOKEN that turns the operator pages and the queue dashboard off. */
export const OPS_OFF = "off";

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

export const logEnvironment = z.object({
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

export const webhookEnvironment = z.object({
  NODE_ENV: z.string().default("development"),
  WEBHOOK_SECRET: z.string().min(32, "must be at least 32 characters long").optional(),
  WEBHOOK_ALLOW_PRIVATE: z.enum(["true", "false"]).default("false"),
});

/** The address of a database. */
const databaseUrl = z
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
  );

export const environment = z.object({
  PORT: integer(0, 65_535).default(3000),
  BASE_URL: z
    .url({ protocol: /^https?$/, error: "must be an address like https://vouchers.example.com" })
    .refine((url) => !/[?#]/.test(url), "must have neither a query nor a fragment")
    .optional(),
  DATABASE_URL: databaseUrl,
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
  SECURITY_CONTACT: z.url({ protocol: /^(mailto|https)$/, error: "must begin with mailto: or https:" }).optional(),
  STOREFRONT_URL: z
    .string()
    .refine(
      (url) => /^https:\/\/[^\s/?#{}]+[/?#]\S*\{code\}/.test(url) && URL.canParse(url),
      "must be an https: address with {code} after its host, like https://shop.example.com/r/{code}",
    )
    .optional(),
  OPS_WRITABLE: z.enum(["true", "false"]).default("false"),
  OPS_DATABASE_URL: databaseUrl.optional(),
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

/** Whether an address of Postgres has a list of hosts, in its authority or in the parameter `host` or `port`. */
function namesSeveralHosts(url: string): boolean {
  const [, authority = "", query = ""] = /^postgres(?:ql)?:\/\/([^/?#]*)[^?#]*(.*)$/.exec(url) ?? [];
  return authority.slice(authority.lastIndexOf("@") + 1).includes(",") || /[?&](host|port)=[^&]*(,|%2c)/i.test(query);
}

export function splitList(text: string): string[] {
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

const rolePassword = z
  .string()
  .regex(/^[\x21-\x7e]{16,}$/, "must be 16 or more visible ASCII characters")
  .nullable()
  .default(null);

/** The passwords that `voucherctl db roles` sets. */
export const rolePasswords = z.object({
  PVA_API_PASSWORD: rolePassword,
  PVA_LOG_PASSWORD: rolePassword,
  PVA_ADMIN_PASSWORD: rolePassword,
});
