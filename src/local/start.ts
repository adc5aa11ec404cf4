import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { readConfig } from "../config.ts";
import { openAdminContext } from "../context.ts";
import { migrateDatabase } from "../db/migrate.ts";
import { openLog } from "../log.ts";
import { makeDemo, showDemo, showMarketplaceDemo } from "./demo.ts";
import { LOCAL_DIRECTORY } from "./directory.ts";

// `npm start`: servers, migrations, one API process, two worker processes and, the first time, a demo. Ctrl-C stops it all.

/** Worker processes: one per core of a small machine. */
const WORKERS = 2;
const API_READY_MS = 30_000;

const children: ChildProcess[] = [];
let stopping = false;

const servers = await useServers();
const env = {
  ...process.env,
  DATABASE_URL: servers.databaseUrl,
  REDIS_URL: servers.redisUrl,
  ...(servers.userKeysUrl !== null && { AUTH_JWKS_URL: servers.userKeysUrl }),
  RESERVATION_TOKEN_SECRET: process.env.RESERVATION_TOKEN_SECRET || servers.reservationTokenSecret,
};
process.on("SIGINT", () => void stop(0));
process.on("SIGTERM", () => void stop(0));
process.on("SIGHUP", () => void stop(0));
try {
  const config = readConfig(env);
  for (const file of await migrateDatabase(config.databaseUrl)) console.log(`Applied ${file}.`);
  for (let i = 0; i < WORKERS; i++) run("../../workers/main.ts");
  run("../main.ts");
  await untilReady(config.port);
  const admin = openAdminContext(config.databaseUrl, openLog("fatal", "start"));
  const demo = await makeDemo(admin).finally(() => admin.close());
  console.log(
    `\nThe API answers at ${config.baseUrl}. Ctrl-C stops everything${servers.embedded ? `; data stays in ${LOCAL_DIRECTORY}/` : ""}.`,
  );
  if (demo !== null) {
    console.log(showDemo(demo, config.baseUrl));
    if (servers.userKeysUrl !== null) console.log(await showMarketplaceDemo(demo));
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  await stop(1);
}

interface Servers {
  embedded: boolean;
  databaseUrl: string;
  redisUrl: string;
  reservationTokenSecret: string | undefined;
  /** Where the embedded default's own user keys are, if they count. */
  userKeysUrl: string | null;
  release(): Promise<void>;
}

/** The servers that the environment names, or the embedded ones for those that it does not. */
async function useServers(): Promise<Servers> {
  const { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl } = process.env;
  if (databaseUrl && redisUrl) {
    return {
      embedded: false,
      databaseUrl,
      redisUrl,
      reservationTokenSecret: undefined,
      userKeysUrl: null,
      release: async () => undefined,
    };
  }
  try {
    const { useLocalServers } = await import("./servers.ts");
    const { useLocalUserKeys } = await import("./user-keys.ts");
    const local = await useLocalServers(LOCAL_DIRECTORY, (line) => console.log(line));
    const ownKeysCount = !databaseUrl && !process.env.AUTH_JWKS_URL;
    return {
      ...local,
      embedded: true,
      databaseUrl: databaseUrl || local.databaseUrl,
      redisUrl: redisUrl || local.redisUrl,
      userKeysUrl: ownKeysCount ? await useLocalUserKeys(LOCAL_DIRECTORY) : null,
    };
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  }
}

/** Starts a process of the service in a group of its own, so that Ctrl-C reaches it through us and in order. */
function run(script: string): void {
  const child = spawn(process.execPath, [fileURLToPath(new URL(script, import.meta.url))], {
    env,
    // The channel tells the process when this one was killed.
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    detached: true,
  });
  children.push(child);
  child.once("exit", (code, signal) => {
    if (stopping) return;
    console.error(`${script} ended (${signal ?? `exit code ${code}`}); stopping.`);
    void stop(1);
  });
}

async function untilReady(port: number): Promise<void> {
  const giveUpAt = Date.now() + API_READY_MS;
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null);
    if (response?.ok) return;
    if (stopping) return;
    if (Date.now() > giveUpAt) throw new Error("The API did not become ready.");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Drains the API first, then the workers that answer it, then the servers. */
async function stop(exitCode: number): Promise<void> {
  if (stopping) return;
  stopping = true;
  const [api, ...workers] = children.toReversed();
  if (api !== undefined) await end(api);
  await Promise.all(workers.map(end));
  await servers.release();
  process.exit(exitCode);
}

function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
    child.kill("SIGTERM");
  });
}
