import { isIPv6 } from "node:net";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type AdminContext, openAdminContext } from "../acts/open-acts.ts";
import { hasKeys } from "../core/keys/db/api-keys.ts";
import { CONFIG_PARTS } from "../open/config-parts.ts";
import { loadParts } from "../open/wings.ts";
import { AppError } from "../platform/api/errors.ts";
import {
  type Config,
  namesOfSecrets,
  readAddress,
  readApiConfig,
  readGivenServers,
  resolveFiles,
  settingsOf,
} from "../platform/config.ts";
import { migrateDatabase } from "../platform/db/migrate.ts";
import { openLogger } from "../platform/logger.ts";
import { type Demo, makeDemo, showDemo } from "./demo.ts";
import { forgetStart, LOCAL_DIRECTORY, rememberStart, save } from "./directory.ts";
import { assertPortFree, firstFreePort, freePort } from "./ports.ts";
import { findUsers } from "./server-users.ts";
import { type ChosenServers, chooseServers } from "./servers.ts";
import { serviceEnvironment } from "./service-environment.ts";
import { loadReadableLog, nameProcesses, ServiceProcesses } from "./service-processes.ts";
import { StartLog } from "./start-log.ts";
import { readStartOptions } from "./start-options.ts";

// `npm start`: starts the servers, migrates, starts API and worker processes and, at the first start, makes a demo.
// Ctrl-C stops everything. Until the service is ready, `npm start` prints one line for each step, and its processes log
// to a file.
const wanted = readStartOptions();
const DEMOS = await loadParts("demo");

/** Maximum wait until the processes that joined this `npm start` have finished their work. Milliseconds. */
const JOINED_END_MAX_MS = 20_000;

// With NODE_USE_ENV_PROXY, Node would use the network's proxy even for ports of this machine.
const { no_proxy: NO_PROXY = process.env.NO_PROXY } = process.env;
process.env.no_proxy = [NO_PROXY, "localhost", "127.0.0.1", "[::1]"].filter(Boolean).join(",");

let stopping = false;
const startLog = new StartLog(join(LOCAL_DIRECTORY, "start.log"));
const openReadable = process.stdout.isTTY ? await loadReadableLog() : null;
const processes = new ServiceProcesses(startLog, openReadable, (sentence) => {
  process.stdout.write(startLog.takeLines());
  console.error(sentence);
  void stop(1);
});

let servers: ChosenServers | undefined;
let given: NodeJS.ProcessEnv = {};
let env: NodeJS.ProcessEnv;

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => void stop(0));
try {
  given = resolveFiles(process.env, CONFIG_PARTS);
  await assertPortFree(readAddress(given).port);
  const { databaseUrl, redisUrl } = readGivenServers(given);
  const started = [databaseUrl ? "" : "Postgres", redisUrl ? "" : "Redis"].filter(Boolean).join(" and ");
  if (started !== "") console.log(`Starting ${started}.`);
  servers = await chooseServers({ databaseUrl, redisUrl }, (line) => console.log(line));
  if (stopping) await stopNow(0);
  servers.watch((sentence) => {
    if (!stopping) console.error(`${sentence} So everything stops.`);
    void stop(1);
  });
  env = await serviceEnvironment(given, servers);
  const config = readApiConfig(env, CONFIG_PARTS);
  const applied = await migrateDatabase(config.databaseUrl, { onWait: (message) => console.log(message) });
  if (applied.length > 0) console.log(`Prepared the database: ${applied.length} migrations.`);
  // Only on the embedded database, the transparency log begins without an operator's command.
  const [log] = servers.embedded && !given.LOG_KEY_FILE ? await loadParts("start") : [];
  const localTlog = (await log?.use(LOCAL_DIRECTORY, config.baseUrl)) ?? null;
  if (log !== undefined && localTlog !== null) {
    await administer(config, (admin) => log.begin(admin, localTlog)).catch((error: unknown) => {
      if (!(error instanceof AppError)) throw error;
      console.log(
        `${error.message} Sealed events get no position in the log. If the database is new, delete ` +
          `${LOCAL_DIRECTORY}/log to begin a new log.`,
      );
    });
    Object.assign(env, localTlog);
  }
  console.log(`Starting ${nameProcesses("API", wanted.apis)} and ${nameProcesses("worker", wanted.workers)}.`);
  const { port, baseUrl } = config;
  const metricsPorts = await findMetricsPorts(config.metricsPort);
  const apiPorts = await findApiPorts(port, metricsPorts);
  const workerMetricsPorts = metricsPorts.slice(apiPorts.length);
  for (const each of workerMetricsPorts) processes.start("worker", { ...env, METRICS_PORT: String(each) });
  for (const [index, each] of apiPorts.entries()) {
    const own = { PORT: String(each), METRICS_PORT: String(metricsPorts[index]) };
    // Only workers get the signing key of the transparency log.
    processes.start("API", { ...env, BASE_URL: baseUrl, LOG_KEY_FILE: "", ...own });
  }
  const host = hostFrom(config.host);
  for (const each of apiPorts) await processes.untilReady(`http://${host}:${each}/readyz`);
  for (const each of workerMetricsPorts) await processes.untilReady(`http://${host}:${each}/metrics`);
  rememberStart(LOCAL_DIRECTORY, {
    port,
    baseUrl,
    own: namesOfSecrets(given, CONFIG_PARTS),
    settings: settingsOf(given, CONFIG_PARTS),
  });
  if (localTlog !== null) save(LOCAL_DIRECTORY, { log: localTlog });
  // A database without keys is new, because every partner needs a key. Only a new one gets a demo.
  const demo = await administer(config, async (admin) => ((await hasKeys(admin.pool)) ? null : makeDemo(admin)));
  const metrics = metricsPorts.map((each) => `http://localhost:${each}/metrics`);
  console.log(`Metrics of the API and its workers: ${metrics.join(" ")}`);
  console.log(describeStart(config, apiPorts.slice(1), demo));
  startLog.end();
  processes.keepRunning();
} catch (error) {
  process.stdout.write(startLog.takeLines());
  console.error(error instanceof Error ? error.message : error);
  await stopNow(1);
}

/** The host by which this machine reaches the processes. */
function hostFrom(host: string | null): string {
  if (host === null || host === "0.0.0.0" || host === "::") return "127.0.0.1";
  return isIPv6(host) ? `[${host}]` : host;
}

async function administer<T>({ databaseUrl }: Config, work: (admin: AdminContext) => Promise<T>): Promise<T> {
  const admin = openAdminContext(databaseUrl, openLogger("fatal", "start"));
  return work(admin).finally(() => admin.close());
}

/** What a new user needs first, on one screen. */
function describeStart(config: Config, furtherPorts: readonly number[], demo: Demo | null): string {
  const { baseUrl, ops, users } = config;
  const off = [
    ops.token === null && "operator pages (OPS_TOKEN)",
    users.jwksUrl === null && "marketplace (AUTH_JWKS_URL)",
    !env.LOG_KEY_FILE && "receipts (LOG_KEY_FILE)",
    !env.WEBHOOK_SECRET && "webhooks (WEBHOOK_SECRET)",
  ].filter(Boolean);
  const password = given.OPS_TOKEN ? "the password is OPS_TOKEN" : `password ${ops.token}`;
  const more = [
    ["npm run demo", "a fresh key and unused codes"],
    ...(env.AUTH_JWKS_URL === given.AUTH_JWKS_URL
      ? []
      : DEMOS.map(({ option, about }) => [`npm run demo -- --${option}`, about])),
    [`${baseUrl}/docs`, "every call, and the guide for partners"],
    ops.token === null ? null : [`${baseUrl}/ops`, password],
  ].filter((line) => line !== null);
  return [
    `\nThe API is at ${baseUrl}. Ctrl-C stops everything.`,
    given.HOST ? false : "Only this machine reaches it. To open it to others: HOST=0.0.0.0 npm start",
    furtherPorts.length > 0 && `Further APIs: ${furtherPorts.map((each) => `http://localhost:${each}`).join(" ")}`,
    servers?.embedded === true && `Data is kept in ${LOCAL_DIRECTORY}/.`,
    off.length > 0 && `Off, each until its variable is set: ${off.join(", ")}.`,
    demo === null ? "" : `\n${showDemo(demo, baseUrl)}`,
    ...more.map(([name = "", what]) => `  ${name.padEnd(29)}  ${what}`),
  ]
    .filter((line) => line !== false)
    .join("\n");
}

/** The metrics ports of all processes, APIs first. They are METRICS_PORT and the ports after it, or free ports. */
async function findMetricsPorts(first: number | null): Promise<number[]> {
  const ports: number[] = [];
  for (let i = 0; i < wanted.apis + wanted.workers; i++) ports.push(first ? first + i : await freePort());
  return ports;
}

/** The ports of the APIs: PORT for the first, and for the others the next free ports that are no metrics ports. */
async function findApiPorts(first: number, taken: readonly number[]): Promise<number[]> {
  const ports = [first];
  while (ports.length < wanted.apis) ports.push(await firstFreePort((ports.at(-1) ?? first) + 1, taken));
  return ports;
}

/** Stops everything. If the servers are still starting, first waits until they have started. */
async function stop(exitCode: number): Promise<void> {
  if (stopping) return;
  stopping = true;
  if (servers !== undefined) await stopNow(exitCode);
}

/** First stops the APIs and the joined processes, then the workers that reply to them, then the servers. */
async function stopNow(exitCode: number): Promise<never> {
  forgetStart(LOCAL_DIRECTORY);
  await Promise.all([processes.end("API"), untilJoinedEnd()]);
  await processes.end("worker");
  await servers?.release();
  process.exit(exitCode);
}

/** Waits for the processes that joined this `npm start`. They end when its entry in `servers.json` is removed. */
async function untilJoinedEnd(): Promise<void> {
  const giveUpAt = Date.now() + JOINED_END_MAX_MS;
  const hasJoined = () => findUsers(resolve(LOCAL_DIRECTORY)).some(({ joined }) => joined === process.pid);
  while (hasJoined() && Date.now() < giveUpAt) await sleep(100);
}
