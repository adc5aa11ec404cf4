import type { z } from "zod";
import {
  DEVELOPMENT_TOKEN_SECRET,
  environment,
  logEnvironment,
  OPS_OFF,
  rolePasswords,
  splitList,
  webhookEnvironment,
} from "./environment.ts";

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
    /** The operator pages and the queue dashboard: their password, null when they are off; whether they may change anything, and where. */
    ops: {
      token: values.OPS_TOKEN === OPS_OFF ? null : (values.OPS_TOKEN ?? null),
      writable: values.OPS_WRITABLE === "true",
      databaseUrl: values.OPS_DATABASE_URL ?? values.DATABASE_URL,
    },
    /** Where to report a vulnerability, in /.well-known/security.txt. */
    securityContact: values.SECURITY_CONTACT ?? null,
    /** Where the button of a referral link's page leads; `{code}` stands for the link's code. Null: the page has no button. */
    storefrontUrl: values.STOREFRONT_URL ?? null,
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

/** @throws ConfigError when tokens would be signed with the public development secret in production. */
function requirePrivateSecret(config: Config): void {
  if (config.production && config.reservationTokenSecrets.includes(DEVELOPMENT_TOKEN_SECRET)) {
    throw new ConfigError(
      "RESERVATION_TOKEN_SECRET is not set to a private secret, which NODE_ENV=production requires",
    );
  }
}

/** As {@link readConfig}, for an API process, which requires OPS_TOKEN in production. */
export function readApiConfig(env: Environment): Config {
  const config = readConfig(env);
  requirePrivateSecret(config);
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
  if (config.workerQueues.includes("redeem")) requirePrivateSecret(config);
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

/** Reads only the service's port and public address. @throws ConfigError when one is invalid. */
export function readAddress(env: Environment): Pick<Config, "port" | "baseUrl"> {
  const values = parse(environment.pick({ BASE_URL: true, PORT: true }), env);
  return { port: values.PORT, baseUrl: baseUrlOf(values) };
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

/**
 * Reads the passwords that `voucherctl db roles` sets for the roles. Null sets none.
 * @throws ConfigError when a password is too short or has invalid characters.
 */
export function readRolePasswords(env: Environment): Record<"pva_api" | "pva_log" | "pva_admin", string | null> {
  const given = parse(rolePasswords, env);
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

function startLowerCase(message: string): string {
  return message.charAt(0).toLowerCase() + message.slice(1);
}
