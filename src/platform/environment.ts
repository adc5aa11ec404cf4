import { isIP } from "node:net";
import { z } from "zod";
import { BARE_SEPARATOR, hasBareSeparator, isDatabaseUrl, isOrigin, namesSeveralHosts } from "./address-forms.ts";
import { isNetwork } from "./addresses.ts";
import { findAddressProblem } from "./db/client.ts";
import { isWebhookSecret } from "./outgoing/webhook-signature.ts";
import { findUrlProblem } from "./outgoing/webhook-url.ts";
import type { QueueSettings } from "./queues/queue-settings.ts";
import { SHARDS_MAX } from "./queues/shards.ts";
import { BadRedisUrl, parseRedisUrl } from "./redis/addresses.ts";

/** The default secret for reservation tokens. It is public, so it is refused in production. */
export const DEVELOPMENT_TOKEN_SECRET = "development-only-reservation-token-secret";

/** Maximum duration of a reservation. Seconds. */
export const RESERVATION_MAX = 86_400;

/** The value of OPS_TOKEN with which the operator pages and the queue dashboard are off. */
export const OPS_OFF = "off";

/**
 * Schemas of variables, some of them in groups. A schema's title is the name of its variable. A secret may instead be
 * in a file, whose path is in the variable NAME_FILE.
 */
export type Variables = { [key: string]: z.ZodType | Variables };

/** The types of the values in a table of {@link Variables}. */
export type VariableValues<Table> = {
  [Key in keyof Table]: Table[Key] extends z.ZodType ? z.output<Table[Key]> : VariableValues<Table[Key]>;
};

/** The schema, with null for a variable that is not set. */
export const orNull = <Schema extends z.ZodType>(schema: Schema) =>
  schema
    .nullable()
    .default(null)
    .meta(schema.meta() ?? {});
export const flag = z
  .enum(["true", "false"])
  .default("false")
  .transform((value) => value === "true");
export const list = z.string().transform(splitList);
export const integer = (min: number, max: number) =>
  z.string().regex(/^\d+$/, "must be a whole number").pipe(z.coerce.number<string>().min(min).max(max));

/** The address of a database. */
const databaseUrl = z
  .string()
  .overwrite(nameVerification)
  .refine((url) => !hasBareSeparator(url), { error: BARE_SEPARATOR, abort: true })
  .refine((url) => !namesSeveralHosts(url), {
    error:
      "names several hosts, which the service does not choose between; give one address that always leads to the " +
      "primary, such as a proxy's",
    abort: true,
  })
  .refine(isDatabaseUrl, {
    error:
      "must be an address like postgres://user:password@host:5432/database or " +
      "postgres://user:password@/database?host=/folder/of/socket",
    abort: true,
  })
  .superRefine((url, issues) => {
    const problem = findAddressProblem(url);
    if (problem !== null) issues.addIssue(`cannot be used: ${problem}`);
  });

/**
 * Replaces `prefer`, `require` and `verify-ca` by `verify-full`. The Postgres client treats all four alike, but prints
 * a warning for the first three.
 */
function nameVerification(url: string): string {
  return /[?&]uselibpqcompat=true/.test(url)
    ? url
    : url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)\b/, "$1verify-full");
}

/** How tokens are verified. Null accepts any issuer or any audience. Without keys, every token is refused. */
const tokens = (prefix: string) => ({
  jwksUrl: orNull(
    z.url({ protocol: /^(https?|file)$/, error: "must be an address that begins with https:, http: or file:" }),
  ).meta({ title: `${prefix}_JWKS_URL` }),
  issuer: orNull(list.pipe(z.array(z.string()).min(1))).meta({ title: `${prefix}_ISSUER` }),
  audience: orNull(list.pipe(z.array(z.string()).min(1))).meta({ title: `${prefix}_AUDIENCE` }),
});

/** The title of a variable whose value may be in a file. */
export const secret = (title: string) => ({ title, isSecret: true });

const production = z
  .enum(["development", "test", "production"])
  .default("development")
  .transform((name) => name === "production")
  .meta({ title: "NODE_ENV" });

/** The variables of a process. Durations are in milliseconds unless the name says otherwise. */
export const VARIABLES = {
  production,
  port: integer(0, 65_535).default(3000).meta({ title: "PORT" }),
  /** The address on which PORT and METRICS_PORT listen. Null means all interfaces. */
  host: orNull(
    z.string().refine((text) => isIP(text) !== 0, "must be an IP address, such as 127.0.0.1 or 0.0.0.0"),
  ).meta({ title: "HOST" }),
  baseUrl: z
    .url({ protocol: /^https?$/, error: "must be an address like https://vouchers.example.com" })
    .refine((url) => !/[?#]/.test(url), "must have neither a query nor a fragment")
    .optional()
    .meta({ title: "BASE_URL" }),
  databaseUrl: databaseUrl.meta(secret("DATABASE_URL")),
  redisUrl: z
    .string()
    .superRefine((text, issues) => {
      try {
        parseRedisUrl(text);
      } catch (error) {
        if (!(error instanceof BadRedisUrl)) throw error;
        issues.addIssue(error.message);
      }
    })
    .meta(secret("REDIS_URL")),
  redisPassword: orNull(z.string()).meta(secret("REDIS_PASSWORD")),
  /**
   * How many shards each queue has. While an operator changes the number, there are two: new jobs use the first, and
   * workers serve the shards of both.
   */
  queueShards: list
    .prefault("1")
    .pipe(z.array(integer(1, SHARDS_MAX)).min(1).max(2))
    .refine((counts) => new Set(counts).size === counts.length, "must be one number, or two different ones")
    .transform((counts) => counts as [number, ...number[]])
    .meta({ title: "QUEUE_SHARDS" }),
  /** The shards that a worker process serves. Null means all. */
  workerShards: orNull(list.pipe(z.array(integer(0, SHARDS_MAX - 1)).min(1))).meta({ title: "WORKER_SHARDS" }),
  /** Null means the duration in `core/reserve/reservation-lifetime.ts`. */
  reservationSeconds: orNull(integer(1, RESERVATION_MAX)).meta({ title: "RESERVATION_SECONDS" }),
  /** New tokens are signed with the first secret. Tokens of every secret are accepted. */
  reservationTokenSecrets: list
    .prefault(DEVELOPMENT_TOKEN_SECRET)
    .refine(
      (secrets) => secrets.length > 0 && secrets.every((secret) => secret.length >= 16),
      "must be one or more secrets of at least 16 characters, separated by commas",
    )
    .meta(secret("RESERVATION_TOKEN_SECRET")),
  redeemWaitMs: integer(100, 60_000).default(10_000).meta({ title: "REDEEM_WAIT_MS" }),
  /**
   * A key's limit in calls per second, for reads and for changes each. The other limits per second follow from it. 0
   * turns all of them off.
   */
  rateLimitRps: integer(0, 1_000_000).default(200).meta({ title: "RATE_LIMIT_RPS" }),
  /** Look-ups of unknown codes per minute and key. 0 turns the limit off. */
  missLimitPerMinute: integer(0, 1_000_000).default(60).meta({ title: "MISS_LIMIT_PER_MINUTE" }),
  /** Addresses and CIDRs of proxies whose X-Forwarded-For is trusted. */
  trustProxy: list
    .refine(
      (entries) => entries.every((entry) => isNetwork(entry) && !/\/0+$/.test(entry)),
      "must be a comma-separated list of IP addresses and CIDRs other than /0",
    )
    .default([])
    .meta({ title: "TRUST_PROXY" }),
  /** Origins whose pages may call the marketplace routes and the public routes. */
  corsOrigins: list
    .refine(
      (entries) => entries.length > 0 && entries.every(isOrigin),
      "must be a comma-separated list of origins as browsers send them, such as https://shop.example.com: in " +
        "lower case, without a path, a default port, * or null",
    )
    .default([])
    .meta({ title: "CORS_ORIGINS" }),
  logLevel: z
    .enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"])
    .default("info")
    .meta({ title: "LOG_LEVEL" }),
  workerConcurrency: integer(1, 1000).default(64).meta({ title: "WORKER_CONCURRENCY" }),
  /** How users' tokens are verified. */
  users: tokens("AUTH"),
  /** Operator pages and queue dashboard: how operators sign in, if they may change anything, and the database. */
  ops: {
    token: orNull(
      z
        .string()
        .refine(
          (token) => token === OPS_OFF || token.length >= 16,
          `must be at least 16 characters long, or ${OPS_OFF}`,
        ),
    ).meta(secret("OPS_TOKEN")),
    /** The JWTs that a proxy sends: their header, and the claims that name the operator and the role. */
    ...tokens("OPS"),
    jwtHeader: z
      .string()
      .regex(/^[\w-]+$/, "must be the name of a header, such as Cf-Access-Jwt-Assertion")
      .transform((name) => name.toLowerCase())
      .default("authorization")
      .meta({ title: "OPS_JWT_HEADER" }),
    nameClaim: z.string().default("email").meta({ title: "OPS_NAME_CLAIM" }),
    roleClaim: z.string().default("roles").meta({ title: "OPS_ROLE_CLAIM" }),
    /** The role for each value of the role claim. Null: the values themselves are names of roles. */
    roleMap: orNull(
      list
        .refine((entries) => entries.length > 0 && entries.every((entry) => /.=./.test(entry)), {
          error: "must be pairs of a value and its role, such as Voucher Admins=admin,Tills=viewer",
        })
        .transform((entries) =>
          entries.map((entry): [value: string, role: string] => {
            const at = entry.lastIndexOf("=");
            return [entry.slice(0, at), entry.slice(at + 1)];
          }),
        ),
    ).meta({ title: "OPS_ROLE_MAP" }),
    writable: flag.meta({ title: "OPS_WRITABLE" }),
    databaseUrl: databaseUrl.optional().meta(secret("OPS_DATABASE_URL")),
  },
  issuer: { on: flag.meta({ title: "ISSUER_API" }) },
  /** Where researchers report a vulnerability. Published in /.well-known/security.txt. */
  securityContact: orNull(z.url({ protocol: /^(mailto|https)$/, error: "must begin with mailto: or https:" })).meta({
    title: "SECURITY_CONTACT",
  }),
  /** The address of the button on a referral link's page. `{code}` stands for the link's code. Null: no button. */
  storefrontUrl: orNull(
    z
      .string()
      .refine(
        (url) => /^https:\/\/[^\s/?#{}]+[/?#]\S*\{code\}/.test(url) && URL.canParse(url),
        "must be an https: address with {code} after its host, like https://shop.example.com/r/{code}",
      ),
  ).meta({ title: "STOREFRONT_URL" }),
  /** The maximum is a fifth of the time without a pass after which the overview reports the sweeper. */
  sweepIntervalMs: integer(100, 60_000).default(5_000).meta({ title: "SWEEP_INTERVAL_MS" }),
  /** Retention of ended reservations without a redemption. Longer than that of webhook deliveries, which read them. */
  reservationRetentionMs: integer(31, 3_650)
    .default(90)
    .transform((days) => days * 86_400_000)
    .meta({ title: "RESERVATION_RETENTION_DAYS" }),
  /** The sweeper verifies every chain once in roughly this time. */
  chainCheckMs: integer(1, 8_760)
    .default(168)
    .transform((hours) => hours * 3_600_000)
    .meta({ title: "CHAIN_CHECK_HOURS" }),
  /**
   * How long servers keep an idle connection open. A load balancer must close idle connections sooner. Otherwise it may
   * send a request on a connection that the server has just closed. Some balancers keep connections for ten minutes.
   */
  keepAliveMs: integer(1, 86_400)
    .default(620)
    .transform((seconds) => seconds * 1_000)
    .meta({ title: "KEEP_ALIVE_SECONDS" }),
  /** Maximum size of a request's line and headers. A JWT with many groups may be in two headers. Bytes. */
  headersMax: integer(8, 256)
    .default(32)
    .transform((kilobytes) => kilobytes * 1_024)
    .meta({ title: "MAX_HEADER_KB" }),
  /** The port of the metrics endpoint. Null turns metrics off. */
  metricsPort: orNull(integer(0, 65_535)).meta({ title: "METRICS_PORT" }),
  /** Whether requests to partners and operators may use any address and port, and no TLS. Never in production. */
  privateReceivers: flag.meta({ title: "WEBHOOK_ALLOW_PRIVATE" }),
  alerts: {
    /** Where messages about red faults are sent. The address contains a password. Null: none are sent. */
    url: orNull(z.string()).meta(secret("ALERT_URL")),
    /** The secret that signs requests to ALERT_URL. Null: the requests are not signed. */
    secret: orNull(
      z
        .string()
        .refine(isWebhookSecret, "must be whsec_ and 24 to 64 bytes in base64, as Standard Webhooks writes secrets"),
    ).meta(secret("ALERT_SECRET")),
  },
  /**
   * The variables that decide whether to load OpenTelemetry, and whether to name the service. OpenTelemetry itself
   * reads these and more.
   */
  traces: {
    disabled: z.string().optional().meta({ title: "OTEL_SDK_DISABLED" }),
    exporters: list.default([]).meta({ title: "OTEL_TRACES_EXPORTER" }),
    endpoint: z.string().optional().meta({ title: "OTEL_EXPORTER_OTLP_ENDPOINT" }),
    tracesEndpoint: z.string().optional().meta({ title: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" }),
    serviceName: z.string().optional().meta({ title: "OTEL_SERVICE_NAME" }),
    attributes: z.string().default("").meta({ title: "OTEL_RESOURCE_ATTRIBUTES" }),
  },
};

/** The variables of a wing. */
export interface WingVariables {
  name: string;
  table: Variables;
}

/** Declares the variables of an optional feature (wing). `of` finds their values in a configuration with them. */
export const wingVariables = <Table extends Variables>(name: string, table: Table) => ({
  name,
  table,
  of: ({ ofWings }: { ofWings: Readonly<Record<string, unknown>> }) => ofWings[name] as VariableValues<Table>,
});

/** What the core and the optional features (wings) add to a configuration. */
export interface ConfigParts {
  /** All queues of the service. */
  queues: readonly QueueSettings[];
  variables: readonly WingVariables[];
}

/** All variables of a process. */
export const variablesOf = ({ queues, variables }: ConfigParts) => {
  const names = queues.map(({ name }) => name);
  const workerQueues = list
    .prefault(names.join(","))
    .pipe(z.array(z.enum(names)).min(1))
    .meta({ title: "WORKER_QUEUES" });
  const ofWings: Variables = Object.fromEntries(variables.map(({ name, table }) => [name, table]));
  return { ...VARIABLES, workerQueues, ofWings };
};

/** Whether requests may be sent to ALERT_URL. */
export function isAlertUrl(url: string, privateReceivers: boolean): boolean {
  return findUrlProblem(url, privateReceivers) === null;
}

function splitList(text: string): string[] {
  return text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}

const password = orNull(z.string().regex(/^[\x21-\x7e]{16,}$/, "must be 16 or more visible ASCII characters"));

/** The passwords that `voucherctl db roles` sets. A null password is not set. */
export const ROLE_PASSWORDS = {
  api: password.meta(secret("PVA_API_PASSWORD")),
  log: password.meta(secret("PVA_LOG_PASSWORD")),
  admin: password.meta(secret("PVA_ADMIN_PASSWORD")),
};

const namesIn = (table: Variables, isWanted: (isSecret: boolean) => boolean): string[] =>
  Object.values(table).flatMap((entry) => {
    if (!(entry instanceof z.ZodType)) return namesIn(entry, isWanted);
    const { title, isSecret } = entry.meta() ?? {};
    return title !== undefined && isWanted(isSecret === true) ? [title] : [];
  });

/** The names of a process's variables whose values may be in files. */
export const processSecrets = (parts: ConfigParts): string[] => namesIn(variablesOf(parts), (isSecret) => isSecret);
/** The names of all variables whose values may be in files. */
export const secretNames = (parts: ConfigParts): string[] => [
  ...processSecrets(parts),
  ...namesIn(ROLE_PASSWORDS, (isSecret) => isSecret),
];
/** The names of a process's variables that are not secrets. */
export const settingNames = (parts: ConfigParts): string[] => namesIn(variablesOf(parts), (isSecret) => !isSecret);
