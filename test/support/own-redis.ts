import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { makeDataDirectory } from "./data-directory.ts";
import { findSteadyPort } from "./steady-port.ts";
import { untilStarted } from "./until.ts";

/** A Redis server for one test, which changes its settings and role. */
export type OwnRedis = Awaited<ReturnType<typeof startOwnRedis>>;

/** Starts a server with durable settings, and further settings. */
export async function startOwnRedis(...settings: string[]) {
  const root = makeDataDirectory("voucher-redis-");
  const directory = join(root, "data");
  mkdirSync(directory);
  const port = await findSteadyPort();
  const place = ["--bind", "127.0.0.1", "--port", String(port), "--dir", directory];
  const durable = ["--appendonly", "yes", "--save", "", "--maxmemory-policy", "noeviction"];
  const server = spawn("redis-server", [...place, ...durable, ...settings], { stdio: "ignore" });
  const client = new Redis({ port, retryStrategy: () => 50 });
  client.on("error", () => undefined);
  await untilStarted(() => client.status === "ready");
  return {
    port,
    directory,
    client,
    url: `redis://127.0.0.1:${port}`,
    async close(): Promise<void> {
      client.disconnect();
      server.kill("SIGKILL");
      await once(server, "exit");
      rmSync(root, { recursive: true, force: true });
    },
  };
}
