import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CONFIG_PARTS } from "../open/config-parts.ts";
import { ConfigError, type GivenServers, resolveFiles } from "../platform/config.ts";
import { identify, isRunning } from "./process-identity.ts";

/** The directory in which the embedded servers of a checkout keep their data. */
export const LOCAL_DIRECTORY = ".data";

/** The embedded servers, as saved in `servers.json` between runs. */
export interface SavedServers {
  postgresPort: number;
  redisPort: number;
  postgresPassword: string;
  /** Absent while a Redis server of an earlier release, which had no password, still runs. */
  redisPassword?: string | undefined;
  reservationTokenSecret: string;
  webhookSecret: string;
  opsToken: string;
}

/** A running `npm start`, as saved in `servers.json`. */
export interface Start {
  pid: number;
  /** Distinguishes the recorded process from a later process with the same id. */
  identity?: string;
  port: number;
  baseUrl: string;
  /** The names of the secrets and server addresses that the operator has set. Their values are not saved. */
  own: string[];
  /** The other variables that the operator gave. Commands and processes that join this `npm start` use them. */
  settings: Record<string, string>;
}

/** The remaining content of `servers.json`. */
interface Remembered {
  /** Each `npm start` that was running when the last one began. */
  starts: Start[];
  /** The names of the secrets that the operator gave to the last `npm start`. */
  lastOwn: Start["own"];
  /** The variables of the embedded database's transparency log. */
  log: object;
}

/** Reads `servers.json` of a directory. Empty if the file cannot be read. */
export function readSaved(directory: string): Partial<SavedServers & Remembered> {
  try {
    return JSON.parse(readFileSync(join(directory, "servers.json"), "utf8"));
  } catch {
    return {};
  }
}

/** Adds fields to `servers.json`. Another process reads either the whole old file or the whole new file. */
export function save(directory: string, fields: Partial<SavedServers & Remembered>): void {
  mkdirSync(directory, { recursive: true });
  const file = join(directory, "servers.json");
  const whole = `${file}.${process.pid}`;
  writeFileSync(whole, JSON.stringify({ ...readSaved(directory), ...fields }), { mode: 0o600 });
  renameSync(whole, file);
}

/** The newest running `npm start` of a directory, or the one with this process id. Null if there is none. */
export function findStart(directory: string, pid?: number): Start | null {
  return otherStarts(directory).findLast((start) => pid === undefined || start.pid === pid) ?? null;
}

/** Records this process as a running `npm start`, until it ends or {@link forgetStart} is called. */
export function rememberStart(directory: string, start: Omit<Start, "pid" | "identity">): void {
  const { pid } = process;
  const starts = [...otherStarts(directory), { ...start, pid, identity: identify(pid) ?? "" }];
  save(directory, { starts, lastOwn: start.own });
}

/** Removes the record of this process. */
export function forgetStart(directory: string): void {
  if (readSaved(directory).starts?.some(({ pid }) => pid === process.pid))
    save(directory, { starts: otherStarts(directory) });
}

function otherStarts(directory: string): Start[] {
  const starts = readSaved(directory).starts ?? [];
  return starts.filter(({ pid, identity }) => pid !== process.pid && isRunning(pid, identity));
}

const SERVERS = ["DATABASE_URL", "REDIS_URL"];

/**
 * Asserts that the environment names every server that the operator gave to the running `npm start`. Otherwise this
 * process would start an empty embedded server.
 */
export function assertSameServers(given: GivenServers): void {
  const isGiven: Record<string, boolean> = {
    DATABASE_URL: given.databaseUrl !== null,
    REDIS_URL: given.redisUrl !== null,
  };
  const own = findStart(LOCAL_DIRECTORY)?.own ?? [];
  assertGiven(own.filter((name) => SERVERS.includes(name) && isGiven[name] === false));
}

/** @throws ConfigError if a secret or an address is missing that only the operator has. */
export function assertGiven(missing: readonly string[]): void {
  if (missing.length === 0) return;
  const what = missing.every((name) => SERVERS.includes(name)) ? "servers" : "secrets";
  throw new ConfigError(`The running service uses ${what} of your own. Set ${missing.join(" and ")} here too.`);
}

/** The environment, in which variables of the running `npm start` take the place of missing variables. */
export function withSettings(start: Start | null, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...start?.settings, ...Object.fromEntries(Object.entries(env).filter(([, value]) => value?.trim())) };
}

/** With the embedded database, webhooks and alerts may go to private addresses, except in production. */
export function privateReceivers(env: NodeJS.ProcessEnv): Record<string, string> {
  return env.NODE_ENV === "production" ? {} : { WEBHOOK_ALLOW_PRIVATE: "true" };
}

/**
 * The environment of a command. Missing variables come from the running `npm start` and, for the embedded database's
 * transparency log, from `servers.json`. If the environment names a database, which may be of another service, adds
 * only the address of `npm start`. First replaces variables that name files by the files' contents, because a file may
 * name the database.
 * @throws ConfigError
 */
export function withLastStart(given: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const env = resolveFiles(given, CONFIG_PARTS);
  const start = findStart(LOCAL_DIRECTORY);
  const own = env.DATABASE_URL ? env : withSettings(start, env);
  const isEmbedded = start !== null && !env.DATABASE_URL && !start.own.includes("DATABASE_URL");
  return {
    ...(isEmbedded && privateReceivers(own)),
    ...own,
    ...(start && !env.PORT && !env.BASE_URL && { PORT: String(start.port), BASE_URL: start.baseUrl }),
    ...(!env.DATABASE_URL && !own.LOG_KEY_FILE && readSaved(LOCAL_DIRECTORY).log),
  };
}
