import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { installDebianPackages, onPath } from "./debian-packages.ts";

/** A Redis of our own, on loopback, in a folder of its own: append-only file on and no snapshots beside it, nothing ever evicted. */
export interface LocalRedis {
  directory: string;
  port: number;
}

const SETTINGS = ["--appendonly", "yes", "--save", "", "--maxmemory-policy", "noeviction", "--databases", "64"];
const DOCKER_IMAGE = "redis:7.4-alpine";
const START_TIMEOUT_MS = 30_000;

/** The connection string of a database in the server. */
export function redisUrl(server: LocalRedis, database = 0): string {
  return `redis://127.0.0.1:${server.port}/${database}`;
}

/**
 * Starts Redis in the background: redis-server or valkey-server from PATH, else the distribution's package, installed after
 * saying so, else a container. Does nothing when it runs already.
 * @throws Error with the command to type when there is no way to get one.
 */
export async function startRedis(server: LocalRedis, say: (line: string) => void): Promise<void> {
  if (await answers(server)) return;
  mkdirSync(server.directory, { recursive: true });
  const program = onPath("redis-server") ?? onPath("valkey-server") ?? installPackage(say);
  if (program !== null) startProgram(program, server);
  else if (dockerAnswers()) startContainer(server);
  else throw new Error(NO_REDIS);
  const giveUpAt = Date.now() + START_TIMEOUT_MS;
  while (!(await answers(server))) {
    if (Date.now() > giveUpAt) throw new Error(`Redis did not start; see ${join(server.directory, "server.log")}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Ends the server; what it holds stays in its append-only file. Does nothing when it does not run. */
export async function stopRedis(server: LocalRedis): Promise<void> {
  if (!(await answers(server))) return;
  await withClient(server, async (client) => {
    // The server answers a SHUTDOWN by closing the connection.
    await client.call("SHUTDOWN").catch(() => undefined);
  });
}

const NO_REDIS = [
  "No Redis was found: no REDIS_URL, no redis-server or valkey-server on PATH, no way to install one, no Docker.",
  "Install one and start again:",
  "  Debian, Ubuntu:  sudo apt-get install -y redis-server",
  "  macOS:           brew install redis",
  "  Docker:          docker run -d -p 6379:6379 redis:7.4-alpine --appendonly yes --maxmemory-policy noeviction",
  "                   and REDIS_URL=redis://127.0.0.1:6379 npm start",
].join("\n");

function startProgram(program: string, server: LocalRedis): void {
  const place = ["--bind", "127.0.0.1", "--port", String(server.port), "--dir", server.directory];
  const background = ["--daemonize", "yes", "--logfile", join(server.directory, "server.log")];
  execFileSync(program, [...place, ...background, ...SETTINGS], { stdio: "ignore" });
}

function startContainer(server: LocalRedis): void {
  const place = ["-p", `127.0.0.1:${server.port}:6379`, "-v", `${server.directory}:/data`];
  execFileSync("docker", ["run", "--rm", "-d", ...place, DOCKER_IMAGE, "redis-server", ...SETTINGS], {
    stdio: "ignore",
  });
}

function installPackage(say: (line: string) => void): string | null {
  installDebianPackages("Redis", ["redis-server"], say);
  return onPath("redis-server");
}

/** Whether a Docker engine, and not only its client, is there. */
export function dockerAnswers(): boolean {
  return spawnSync("docker", ["info"], { stdio: "ignore", timeout: 10_000 }).status === 0;
}

async function answers(server: LocalRedis): Promise<boolean> {
  return withClient(server, async (client) => (await client.ping()) === "PONG").catch(() => false);
}

async function withClient<T>(server: LocalRedis, work: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(redisUrl(server), { lazyConnect: true, retryStrategy: () => null, maxRetriesPerRequest: 0 });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return await work(client);
  } finally {
    client.disconnect();
  }
}
