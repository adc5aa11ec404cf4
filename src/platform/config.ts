import { readFileSync } from "node:fs";
import { z } from "zod";
import {
  type ConfigParts,
  DEVELOPMENT_TOKEN_SECRET,
  isAlertUrl,
  OPS_OFF,
  orNull,
  processSecrets,
  RESERVATION_MAX,
  ROLE_PASSWORDS,
  secretNames,
  settingNames,
  VARIABLES,
  type Variables,
  type VariableValues,
  variablesOf,
  type WingVariables,
} from "./environment.ts";
import { withPassword } from "./redis/addresses.ts";

type Environment = Record<string, string | undefined>;

/** The error for an invalid environment. `message` has one line per problem, which starts with the variable's name. */
export class ConfigError extends Error {}

/** The error for a file, named by a variable or an option, that cannot be used. The message is for an operator. */
export class UnusableFile extends Error {}

/** Reads and validates a process's configuration. @throws ConfigError when a variable is missing or invalid. */
export function readConfig(env: Environment, parts: ConfigParts) {
  const values = readVariables(variablesOf(parts), env);
  const shardsMax = Math.max(...values.queueShards);
  const unknown = values.workerShards?.find((shard) => shard >= shardsMax);
  if (unknown !== undefined) {
    throw new ConfigError(
      `WORKER_SHARDS names shard ${unknown}, but the ${shardsMax} shards of QUEUE_SHARDS are numbered from 0 to ` +
        `${shardsMax - 1}`,
    );
  }
  refusePrivateReceivers(values);
  refuseBadAlertUrl(values);
  const baseUrl = baseUrlOf(values);
  return {
    ...values,
    redisUrl: withPassword(values.redisUrl, values.redisPassword),
    /** All queues of the service. */
    queues: parts.queues,
    /** Without a trailing slash. */
    baseUrl,
    /** The path of `baseUrl`. A proxy removes it from requests. Empty if there is none. */
    basePath: new URL(baseUrl).pathname.replace(/\/$/, ""),
    /** The longest reservation of any process, even of one with another RESERVATION_SECONDS. */
    reservationMaxMs: RESERVATION_MAX * 1_000,
    ops: opsSettings(values),
    issuer: { databaseUrl: issuerDatabaseUrl(values) },
    traces: traceSettings(values.traces),
  };
}

/** The configuration of a process. Durations are milliseconds unless the name says otherwise. */
export type Config = ReturnType<typeof readConfig>;

/** If only this machine can reach the public address, describes the problem and its solution. Otherwise null. */
export function describeLocalAddress({ baseUrl }: { baseUrl: string }): string | null {
  if (!/^(localhost|127\..*|\[::1\])$|\.localhost$/.test(new URL(baseUrl).hostname)) return null;
  return (
    `The addresses in answers, such as verifyUrl, begin with ${baseUrl}, which only this machine can reach. ` +
    "Set BASE_URL to the public address."
  );
}

/** The database address of the issuer API. Null turns this API off: ISSUER_API is off, or production has no address. */
function issuerDatabaseUrl({ issuer, ops, production, databaseUrl }: VariableValues<typeof VARIABLES>): string | null {
  if (!issuer.on) return null;
  return ops.databaseUrl ?? (production ? null : databaseUrl);
}

function baseUrlOf({ baseUrl, port }: { baseUrl?: string | undefined; port: number }): string {
  return (baseUrl ?? `http://localhost:${port}`).replace(/\/+$/, "");
}

/** The settings of the operator pages. `isOff`: this process has no such pages. */
function opsSettings({ ops, databaseUrl, production }: VariableValues<typeof VARIABLES>) {
  const { jwksUrl, issuer, audience } = ops;
  if (production && jwksUrl !== null && (issuer === null || audience === null)) {
    const missing = issuer === null ? "OPS_ISSUER" : "OPS_AUDIENCE";
    throw new ConfigError(`${missing} is not set, which NODE_ENV=production requires with OPS_JWKS_URL`);
  }
  const isOff = ops.token === OPS_OFF;
  return { ...ops, token: isOff ? null : ops.token, isOff, databaseUrl: ops.databaseUrl ?? databaseUrl };
}

function refusePrivateReceivers({
  production,
  privateReceivers,
}: Pick<Config, "production" | "privateReceivers">): void {
  if (!privateReceivers || !production) return;
  throw new ConfigError("WEBHOOK_ALLOW_PRIVATE is true, which NODE_ENV=production refuses");
}

function refuseBadAlertUrl({ alerts, privateReceivers }: Pick<Config, "alerts" | "privateReceivers">): void {
  if (alerts.url === null || isAlertUrl(alerts.url, privateReceivers)) return;
  throw new ConfigError(
    "ALERT_URL must be an https: address of a public host, without a user or a fragment; " +
      "WEBHOOK_ALLOW_PRIVATE=true also allows http: and any host",
  );
}

/** Traces are on if an exporter or an endpoint is set, unless the SDK is disabled or the exporter is `none`. */
function traceSettings(given: VariableValues<typeof VARIABLES.traces>) {
  const { disabled, exporters, endpoint, tracesEndpoint, serviceName, attributes } = given;
  const isOff = disabled?.trim().toLowerCase() === "true" || exporters.includes("none");
  return {
    on: !isOff && (exporters.length > 0 || endpoint !== undefined || tracesEndpoint !== undefined),
    serviceNamed: serviceName !== undefined || /(^|,)\s*service\.name\s*=/.test(attributes),
  };
}

/** Refuses the public development secret in production, because it signs tokens. @throws ConfigError */
function requirePrivateSecret(config: Config): void {
  if (config.production && config.reservationTokenSecrets.includes(DEVELOPMENT_TOKEN_SECRET)) {
    throw new ConfigError(
      "RESERVATION_TOKEN_SECRET is not set to a private secret, which NODE_ENV=production requires",
    );
  }
}

/** As {@link readConfig}, for an API process. */
export function readApiConfig(env: Environment, parts: ConfigParts): Config {
  const config = readConfig(env, parts);
  requirePrivateSecret(config);
  return config;
}

/**
 * Whether operators can sign in, according to the configuration. In production without a token and a JWKS, true if the
 * operator pages are on, because the process then looks for operators in the database when it starts.
 */
export function hasConfiguredSignIn({ ops, production }: Pick<Config, "ops" | "production">): boolean {
  return ops.token !== null || ops.jwksUrl !== null || (production && !ops.isOff);
}

/** The error of an API process in production without a way to sign in to the operator pages. */
export function missingSignIn(): ConfigError {
  return new ConfigError(
    "OPS_TOKEN is not set, which NODE_ENV=production requires of an API process without OPS_JWKS_URL and without " +
      `named operators (voucherctl operator create); ${OPS_OFF} runs it without operator pages`,
  );
}

/** As {@link readConfig}, for a worker process. @throws ConfigError also if every queue lacks a required variable. */
export function readWorkerConfig(env: Environment, parts: ConfigParts): Config {
  const config = readConfig(env, parts);
  const { workerQueues } = config;
  if (workerQueues.includes("redeem")) requirePrivateSecret(config);
  const needs = new Map(parts.queues.map(({ name, needs }) => [name, needs]));
  const missing = workerQueues.flatMap((queue) => needs.get(queue) ?? []).filter((name) => !readText(env, name));
  if (missing.length === workerQueues.length) {
    const [are, queues] = [missing.length === 1 ? "is" : "are", workerQueues.join(",")];
    throw new ConfigError(`${missing.join(" and ")} ${are} not set, which WORKER_QUEUES=${queues} requires`);
  }
  return config;
}

// The functions below are for commands, which read only the variables that they use. Each throws a ConfigError if such
// a variable is missing or invalid.

/** The configuration of a command that uses an optional feature (wing). */
export function readWingConfig(env: Environment, { name, table }: WingVariables) {
  const { production, privateReceivers } = VARIABLES;
  const ofWings: Variables = { [name]: table };
  const values = readVariables({ production, privateReceivers, ofWings }, env);
  refusePrivateReceivers(values);
  return values;
}

export function readAlertConfig(env: Environment): Pick<Config, "alerts" | "privateReceivers" | "baseUrl"> {
  const { production, privateReceivers, alerts, port, baseUrl } = VARIABLES;
  const values = readVariables({ production, privateReceivers, alerts, port, baseUrl }, env);
  refusePrivateReceivers(values);
  refuseBadAlertUrl(values);
  return { ...values, baseUrl: baseUrlOf(values) };
}

export function readDatabaseUrl(env: Environment): string {
  return readVariables({ url: VARIABLES.databaseUrl }, env).url;
}

export function readAddress(env: Environment): Pick<Config, "port" | "baseUrl"> {
  const { port, baseUrl } = VARIABLES;
  const values = readVariables({ port, baseUrl }, env);
  return { port: values.port, baseUrl: baseUrlOf(values) };
}

export function readQueueShards(env: Environment): Config["queueShards"] {
  return readVariables({ shards: VARIABLES.queueShards }, env).shards;
}

/** The issuer and the audience that users' tokens must name. */
export function readTokenClaims(env: Environment): Pick<Config["users"], "issuer" | "audience"> {
  const { issuer, audience } = VARIABLES.users;
  return readVariables({ issuer, audience }, env);
}

export function readGranteePasswords(env: Environment): VariableValues<typeof ROLE_PASSWORDS> {
  return readVariables(ROLE_PASSWORDS, env);
}

/**
 * The servers that the environment names. Null means the embedded server. But a command with DATABASE_URL and without
 * REDIS_URL uses no Redis.
 */
export interface GivenServers {
  databaseUrl: string | null;
  redisUrl: string | null;
}

export function readGivenServers(env: Environment): GivenServers {
  const { databaseUrl, redisUrl, redisPassword } = VARIABLES;
  const given = readVariables({ databaseUrl: orNull(databaseUrl), redisUrl: orNull(redisUrl), redisPassword }, env);
  return { ...given, redisUrl: given.redisUrl && withPassword(given.redisUrl, given.redisPassword) };
}

/**
 * Reads a variable. The value of a secret may be in the file that NAME_FILE names. Removes white space at the ends,
 * which editors and shells add. An empty variable counts as unset, because compose files and shells pass unset
 * variables as empty ones.
 * @throws ConfigError
 */
function readText(env: Environment, name: string, isSecret = true): string | undefined {
  const given = env[name]?.trim() || undefined;
  const file = isSecret ? env[`${name}_FILE`]?.trim() || undefined : undefined;
  if (given !== undefined && file !== undefined) throw new ConfigError(`${name} and ${name}_FILE are both set`);
  const text = file === undefined ? given : readSecretFile(`${name}_FILE`, file);
  if (text !== undefined && /^(["']).*\1$/s.test(text))
    throw new ConfigError(`${name} is in quotes, which would be part of its value; remove them`);
  if (text !== undefined && /\p{Cc}/u.test(text))
    throw new ConfigError(`${name} has a line end or another control character inside`);
  return text;
}

/** Returns the environment with the contents of files in place of their names. @throws ConfigError */
export function resolveFiles(env: Environment, parts: ConfigParts): Environment {
  const resolved = { ...env };
  for (const name of secretNames(parts)) {
    const text = readText(env, name);
    if (text === undefined) delete resolved[name];
    else resolved[name] = text;
    delete resolved[`${name}_FILE`];
  }
  return resolved;
}

/** The names of the secrets that an environment gives a process. */
export function namesOfSecrets(env: Environment, parts: ConfigParts): string[] {
  return processSecrets(parts).filter((name) => readText(env, name) !== undefined);
}

/** Variables that may differ between the processes of one service. */
const OF_ONE_PROCESS = ["PORT", "BASE_URL", "METRICS_PORT"];

/** The variables, except secrets, that every process of a service gets from an environment. */
export function settingsOf(env: Environment, parts: ConfigParts): Record<string, string> {
  const names = settingNames(parts).filter((name) => !OF_ONE_PROCESS.includes(name));
  return Object.fromEntries(names.flatMap((name) => (env[name]?.trim() ? [[name, env[name]]] : [])));
}

/** Finds variables of Node and of libraries that would make a process reveal secrets. */
function* findUnsafe({ NODE_TLS_REJECT_UNAUTHORIZED, DEBUG = "" }: Environment): Iterable<string> {
  if (NODE_TLS_REJECT_UNAUTHORIZED === "0")
    yield "NODE_TLS_REJECT_UNAUTHORIZED is 0: any server could read what this process sends; unset it, and name your " +
      "authority in NODE_EXTRA_CA_CERTS";
  // The Redis client prints its commands, including the password, to debug channels that begin with REDIS_CHANNEL.
  const reaches = (pattern: string) =>
    pattern.startsWith(REDIS_CHANNEL) ||
    (pattern.includes("*") && REDIS_CHANNEL.startsWith(pattern.split("*", 1)[0] ?? ""));
  if (DEBUG.split(/[\s,]+/).some(reaches))
    yield `DEBUG is ${DEBUG}: the client of Redis would print passwords; unset it, or leave ${REDIS_CHANNEL} out`;
}
const REDIS_CHANNEL = "ioredis:";

function readSecretFile(name: string, file: string): string {
  try {
    const text = readFileSync(file, "utf8").trim();
    if (text !== "") return text;
  } catch (error) {
    throw new ConfigError(`${name} names ${file}, which cannot be read: ${(error as Error).message}`);
  }
  throw new ConfigError(`${name} names ${file}, which is empty`);
}

/** Reads the variables of a table. @throws ConfigError that names each invalid one. */
function readVariables<Table extends Variables>(table: Table, env: Environment): VariableValues<Table> {
  const problems: string[] = [];
  const read = (entry: Variables[string]): unknown => {
    if (!(entry instanceof z.ZodType))
      return Object.fromEntries(Object.entries(entry).map(([key, inner]) => [key, read(inner)]));
    const name = entry.meta()?.title ?? "";
    let text: string | undefined;
    try {
      text = readText(env, name, entry.meta()?.isSecret === true);
    } catch (error) {
      problems.push((error as Error).message);
      return undefined;
    }
    const { data, error } = entry.safeParse(text);
    for (const { message } of error?.issues ?? []) {
      problems.push(
        text === undefined ? `${name} is not set` : `${name} ${message[0]?.toLowerCase()}${message.slice(1)}`,
      );
    }
    return data;
  };
  const values = read(table) as VariableValues<Table>;
  problems.push(...findUnsafe(env));
  if (problems.length > 0) throw new ConfigError(problems.join("\n"));
  return values;
}
