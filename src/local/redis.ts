import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connectOnce } from "../platform/redis/connect-once.ts";
import { installDebianPackages, onPath } from "./debian-packages.ts";

/** A local Redis on loopback, with an append-only file, without snapshots and without eviction. */
export interface LocalRedis {
  directory: string;
  port: number;
  /** Without a password, every user of the machine may use the server. */
  password?: string | undefined;
}

const SETTINGS = ["--appendonly", "yes", "--save", "", "--maxmemory-policy", "noeviction", "--databases", "64"];
/** Contains the password, because every user of the machine could read a password on the command line. */
const SETTINGS_FILE = "redis.conf";
const DOCKER_IMAGE = "redis:7.4-alpine";
/** Maximum wait for a server or process to start on a busy machine. Milliseconds. */
export const START_MAX_MS = 60_000;
/** Maximum wait for a connection, and for a response. Milliseconds. */
const CONNECT_MAX_MS = 10_000;

/** Returns the connection string of a database on the server. */
export function redisUrl({ port, password }: LocalRedis, database = 0): string {
  return `redis://${password === undefined ? "" : `:${password}@`}127.0.0.1:${port}/${database}`;
}

/**
 * Starts Redis in the background. Uses the program on PATH or, after a message, installs the distribution's package. If
 * that is impossible, starts a container.
 * @throws Error with the commands to install Redis if none of these works.
 */
export async function startRedis(server: LocalRedis, say: (line: string) => void): Promise<void> {
  if (await answers(server)) return;
  // Only the owner can read the directory, and therefore the files that Redis writes to it.
  mkdirSync(server.directory, { recursive: true });
  chmodSync(server.directory, 0o700);
  const settings = server.password === undefined ? "" : `requirepass ${server.password}\n`;
  writeFileSync(join(server.directory, SETTINGS_FILE), settings, { mode: 0o600 });
  const program = onPath("redis-server") ?? onPath("valkey-server") ?? installPackage(say);
  if (program !== null) startProgram(program, server);
  else if (dockerAnswers()) startContainer(server);
  else throw new Error(NO_REDIS);
  const giveUpAt = Date.now() + START_MAX_MS;
  while (!(await answers(server))) {
    if (Date.now() > giveUpAt) throw new Error(`Redis did not start; see ${join(server.directory, "server.log")}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Stops the server. Its data stays in the append-only file. Does nothing if the server is not running. */
export async function stopRedis(server: LocalRedis): Promise<void> {
  if (!(await answers(server))) return;
  await connectOnce(new URL(redisUrl(server)), CONNECT_MAX_MS, async (client) => {
    // The server responds to SHUTDOWN by closing the connection.
    await client.call("SHUTDOWN").catch(() => undefined);
  });
}

const NO_REDIS = [
  "No Redis was found: REDIS_URL is not set, redis-server and valkey-server are not on PATH and cannot be " +
    "installed, and Docker is not running.",
  "Install Redis and start again:",
  "  Debian, Ubuntu:  sudo apt-get install -y redis-server",
  "  macOS:           brew install redis",
  "  Docker:          docker run -d -p 6379:6379 redis:7.4-alpine --appendonly yes --maxmemory-policy noeviction",
  "                   and REDIS_URL=redis://127.0.0.1:6379 npm start",
].join("\n");

function startProgram(program: string, server: LocalRedis): void {
  const location = ["--bind", "127.0.0.1", "--port", String(server.port), "--dir", server.directory];
  const background = ["--daemonize", "yes", "--logfile", join(server.directory, "server.log")];
  const file = join(server.directory, SETTINGS_FILE);
  const settings = [file, ...location, ...background, ...SETTINGS];
  execFileSync("sh", ["-c", 'umask 077; exec "$@"', "sh", program, ...settings], { stdio: "ignore" });
}

function startContainer(server: LocalRedis): void {
  const location = ["-p", `127.0.0.1:${server.port}:6379`, "-v", `${server.directory}:/data`];
  const settings = [`/data/${SETTINGS_FILE}`, ...SETTINGS];
  execFileSync("docker", ["run", "--rm", "-d", ...location, DOCKER_IMAGE, "redis-server", ...settings], {
    stdio: "ignore",
  });
}

function installPackage(say: (line: string) => void): string | null {
  installDebianPackages("Redis", ["redis-server"], say);
  return onPath("redis-server");
}

/** Whether a Docker engine is running. An installed client without an engine is not enough. */
export function dockerAnswers(): boolean {
  return spawnSync("docker", ["info"], { stdio: "ignore", timeout: 10_000 }).status === 0;
}

async function answers(server: LocalRedis): Promise<boolean> {
  return pingRedis(redisUrl(server)).then(
    () => true,
    () => false,
  );
}

/** Connects to a Redis server once. @throws Error with the reason why it does not answer. */
export async function pingRedis(url: string): Promise<void> {
  await connectOnce(new URL(url), CONNECT_MAX_MS, (client) => client.ping());
}
