import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Config, readAddress, readApiConfig, readGivenServers } from "../config.ts";
import { AppError } from "../contract/errors.ts";
import { hasKeys } from "../db/api-keys.ts";
import { migrateDatabase } from "../db/migrate.ts";
import { openLog } from "../log.ts";
import { type AdminContext, openAdminContext } from "../open-command.ts";
import { type Demo, makeDemo, showDemo } from "./demo.ts";
import { LOCAL_DIRECTORY, save } from "./directory.ts";
import { beginLocalLog, useLocalLog } from "./log-files.ts";
import { START_MAX_MS } from "./redis.ts";
import { type ChosenServers, chooseServers, freePort, webhookEnvOf } from "./servers.ts";
import { useLocalUserKeys } from "./user-keys.ts";

// `npm start`: servers, migrations, one API process, two worker processes and, on the first start, a demo. Ctrl-C stops everything.

/** Worker processes: one per core of a small machine. */
const WORKERS = 2;

/** The script of the API process, which never gets the log's key. */
const API = "../main.ts";

const children: ChildProcess[] = [];
const openReadable = process.stdout.isTTY ? await loadReadableLog() : null;
let stopping = false;

let servers: ChosenServers | undefined;
let env: NodeJS.ProcessEnv;

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => void stop(0));
try {
  await assertPortFree(readAddress(process.env).port);
  servers = await chooseServers(readGivenServers(process.env), (line) => console.log(line));
  if (stopping) await stopNow(0);
  // The local user keys are accepted only with the embedded database.
  const userKeysUrl = servers.embedded && !process.env.AUTH_JWKS_URL ? await useLocalUserKeys(LOCAL_DIRECTORY) : null;
  env = {
    ...webhookEnvOf(servers),
    ...process.env,
    ...(userKeysUrl !== null && { AUTH_JWKS_URL: userKeysUrl }),
    DATABASE_URL: servers.databaseUrl,
    REDIS_URL: servers.redisUrl,
    RESERVATION_TOKEN_SECRET: process.env.RESERVATION_TOKEN_SECRET || servers.secrets.reservationTokenSecret,
    OPS_WRITABLE: process.env.OPS_WRITABLE || "true",
    OPS_TOKEN: process.env.OPS_TOKEN || servers.secrets.opsToken,
  };
  const config = readApiConfig(env);
  const applied = await migrateDatabase(config.databaseUrl, { onWait: (message) => console.log(message) });
  for (const file of applied) console.log(`Applied ${file}.`);
  // Only the log of the embedded database is begun without an operator's command.
  const localLog =
    servers.embedded && !process.env.LOG_KEY_FILE ? await useLocalLog(LOCAL_DIRECTORY, config.baseUrl) : null;
  if (localLog !== null) {
    await administer(config, (admin) => beginLocalLog(admin, localLog)).catch((error: unknown) => {
      if (!(error instanceof AppError)) throw error;
      console.log(
        `${error.message} Sealed events get no place in the log. If the database is new, delete ${LOCAL_DIRECTORY}/log to begin a new log.`,
      );
    });
    Object.assign(env, localLog);
  }
  const [apiMetricsPort, ...workerMetricsPorts] = await metricsPorts(config.metricsPort);
  for (const port of workerMetricsPorts) run("../../workers/main.ts", port);
  run(API, apiMetricsPort);
  await untilReady(`http://127.0.0.1:${config.port}/readyz`);
  // The banner must come after the first lines of every process.
  for (const port of workerMetricsPorts) await untilReady(`http://127.0.0.1:${port}/metrics`);
  const { port, baseUrl } = config;
  save(LOCAL_DIRECTORY, { port, baseUrl, embedded: servers.embedded, log: localLog });
  // A database without a key is unused, because every partner needs one.
  const demo = await administer(config, async (admin) => ((await hasKeys(admin.pool)) ? null : makeDemo(admin)));
  const metrics = [apiMetricsPort, ...workerMetricsPorts].map((port) => `http://localhost:${port}/metrics`);
  console.log(`Metrics of the API and its workers: ${metrics.join(" ")}`);
  console.log(describeStart(config, demo));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  await stopNow(1);
}

async function administer<T>({ databaseUrl }: Config, work: (admin: AdminContext) => Promise<T>): Promise<T> {
  const admin = openAdminContext(databaseUrl, openLog("fatal", "start"));
  return work(admin).finally(() => admin.close());
}

/** What a person needs first, on one screen. */
function describeStart(config: Config, demo: Demo | null): string {
  const { baseUrl, ops, users, webhooks } = config;
  const off = [
    ops.token === null && "operator pages (OPS_TOKEN)",
    users.jwksUrl === null && "marketplace (AUTH_JWKS_URL)",
    !env.LOG_KEY_FILE && "receipts (LOG_KEY_FILE)",
    webhooks.secret === null && "webhooks (WEBHOOK_SECRET)",
  ].filter(Boolean);
  const password = process.env.OPS_TOKEN ? "the password is OPS_TOKEN" : `password ${ops.token}`;
  const more = [
    ["npm run demo", "a fresh key and unused codes"],
    env.AUTH_JWKS_URL === process.env.AUTH_JWKS_URL
      ? null
      : ["npm run demo -- --marketplace", "users who claim and buy vouchers"],
    [`${baseUrl}/docs`, "every call, and the guide for partners"],
    ops.token === null ? null : [`${baseUrl}/ops`, password],
  ].filter((line) => line !== null);
  return [
    `\nThe API is at ${baseUrl}. Ctrl-C stops everything.`,
    servers?.embedded === true && `Data is kept in ${LOCAL_DIRECTORY}/.`,
    off.length > 0 && `Off, each until its variable is set: ${off.join(", ")}.`,
    demo === null ? "" : `\n${showDemo(demo, baseUrl)}`,
    ...more.map(([name = "", what]) => `  ${name.padEnd(29)}  ${what}`),
  ]
    .filter((line) => line !== false)
    .join("\n");
}

/** The metrics ports of the API process and of each worker: METRICS_PORT and the ports after it, or free ports. */
async function metricsPorts(first: number | null): Promise<number[]> {
  const ports: number[] = [];
  for (let i = 0; i <= WORKERS; i++) ports.push(first ? first + i : await freePort());
  return ports;
}

/** Starts a process of the service in its own process group, so that Ctrl-C reaches only this process, which stops the others in order. */
function run(script: string, metricsPort: number | undefined): void {
  const child = spawn(process.execPath, [fileURLToPath(new URL(script, import.meta.url))], {
    env: { ...env, METRICS_PORT: String(metricsPort), ...(script === API && { LOG_KEY_FILE: "" }) },
    // The IPC channel tells the child when this process was killed.
    stdio: ["ignore", openReadable === null ? "inherit" : "pipe", "inherit", "ipc"],
    detached: true,
  });
  // Each process has its own printer, because a chunk may end in the middle of a line.
  if (openReadable !== null) child.stdout?.pipe(openReadable());
  children.push(child);
  child.once("exit", (code, signal) => {
    if (stopping) return;
    console.error(
      `${script === API ? "The API" : "A worker"} ended (${signal ?? `exit code ${code}`}), so everything stops.`,
    );
    void stop(1);
  });
}

/** Loads the printer of readable log lines for a terminal; null in an installation without development dependencies. */
async function loadReadableLog(): Promise<(() => NodeJS.WritableStream) | null> {
  const pretty = await import("pino-pretty").catch(() => null);
  if (pretty === null) return null;
  const options = {
    translateTime: "SYS:HH:MM:ss",
    ignore: "pid,role",
    messageFormat: "{role}: {msg}",
    singleLine: true,
    sync: true,
  };
  return () => pretty.default(options);
}

async function untilReady(url: string): Promise<void> {
  const giveUpAt = Date.now() + START_MAX_MS;
  for (;;) {
    const response = await fetch(url).catch(() => null);
    if (response?.ok || stopping) return;
    if (Date.now() > giveUpAt) throw new Error(`${url} did not answer in time.`);
    await sleep(100);
  }
}

/** Stops everything; if the servers are still starting, as soon as they have started. */
async function stop(exitCode: number): Promise<void> {
  if (stopping) return;
  stopping = true;
  if (servers !== undefined) await stopNow(exitCode);
}

/** Stops the API first, then the workers that reply to it, then the servers. */
async function stopNow(exitCode: number): Promise<never> {
  const [api, ...workers] = children.toReversed();
  if (api !== undefined) await end(api);
  await Promise.all(workers.map(end));
  await servers?.release();
  process.exit(exitCode);
}

function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
    child.kill("SIGTERM");
  });
}

/** Asserts that a port is free, so that no other process answers there instead. @throws Error with a message for the user. */
function assertPortFree(port: number): Promise<void> {
  if (port === 0) throw new Error("PORT is 0, but links need a port that stays the same. Use one: PORT=3000 npm start");
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (error: NodeJS.ErrnoException) =>
      reject(new Error(explainPort(port, error), { cause: error })),
    );
    probe.listen(port, () => probe.close(() => resolve()));
  });
}

function explainPort(port: number, { code, message }: NodeJS.ErrnoException): string {
  if (code === "EADDRINUSE") {
    return `Another process listens on port ${port}. Stop it or use another port: PORT=${port === 65_535 ? port - 1 : port + 1} npm start`;
  }
  if (code === "EACCES") return `Listening on port ${port} is not permitted. Use another port: PORT=3000 npm start`;
  return `Cannot listen on port ${port}: ${message}`;
}
