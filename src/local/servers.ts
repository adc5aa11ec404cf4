import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join, resolve } from "node:path";
import { lockFile } from "../../packages/tlog/src/durable-file.ts";
import { readSaved, type SavedServers, save } from "./directory.ts";
import { findEmbeddedPostgres, type LocalPostgres, postgresUrl, startPostgres, stopPostgres } from "./postgres.ts";
import { type LocalRedis, redisUrl, startRedis, stopRedis } from "./redis.ts";

/** The embedded servers, shared by every process of this checkout that needs them. */
interface LocalServers {
  databaseUrl: string;
  redisUrl: string;
  reservationTokenSecret: string;
  webhookSecret: string;
  /** The password of the operator pages and the queue dashboard. */
  opsToken: string;
  /** Stops using the servers. The last process to do so stops them. */
  release(): Promise<void>;
}

/** Longest wait for another process to start or stop the servers. Milliseconds. */
const LOCK_TIMEOUT_MS = 120_000;

/** Which of the servers a process needs. */
interface WantedServers {
  postgres: boolean;
  redis: boolean;
}

/**
 * Uses the embedded Postgres and Redis under `directory`, or one of them, and starts them if they are not running. Each process that uses
 * them writes a file named by its process id, so that a killed process does not keep them running. If one does not start, both are
 * stopped, unless another process uses them.
 */
export async function useLocalServers(
  directory: string,
  wanted: WantedServers,
  say: (line: string) => void,
): Promise<LocalServers> {
  if (wanted.postgres) findEmbeddedPostgres();
  const root = resolve(directory);
  const users = join(root, "users");
  mkdirSync(users, { recursive: true });
  const saved = await locked(root, async () => {
    const state = await startServers(root, wanted, say);
    writeFileSync(join(users, String(process.pid)), "");
    return state;
  });
  const { postgres, redis } = serversOf(root, saved);
  return {
    databaseUrl: postgresUrl(postgres),
    redisUrl: redisUrl(redis),
    reservationTokenSecret: saved.reservationTokenSecret,
    webhookSecret: saved.webhookSecret,
    opsToken: saved.opsToken,
    release: () =>
      locked(root, async () => {
        rmSync(join(users, String(process.pid)), { force: true });
        if (liveUsers(users).length > 0) return;
        await Promise.all([stopPostgres(postgres), stopRedis(redis)]);
      }),
  };
}

function serversOf(root: string, saved: SavedServers): { postgres: LocalPostgres; redis: LocalRedis } {
  return {
    postgres: { directory: join(root, "postgres"), port: saved.postgresPort, password: saved.postgresPassword },
    redis: { directory: join(root, "redis"), port: saved.redisPort },
  };
}

async function startServers(root: string, wanted: WantedServers, say: (line: string) => void): Promise<SavedServers> {
  const before = readSaved(root);
  const known = before.postgresPort !== undefined;
  const inUse = known && liveUsers(join(root, "users")).length > 0;
  const saved: SavedServers = {
    postgresPassword: randomBytes(24).toString("hex"),
    reservationTokenSecret: randomBytes(32).toString("hex"),
    webhookSecret: randomBytes(32).toString("hex"),
    opsToken: randomBytes(16).toString("hex"),
    ...before,
    // Another program may use the ports of the last run by now.
    postgresPort: (inUse && before.postgresPort) || (await freePort()),
    redisPort: (inUse && before.redisPort) || (await freePort()),
  };
  if (!inUse && known) {
    // Servers of the last run may still run after all its processes were killed.
    const previous = serversOf(root, { ...saved, ...before });
    await Promise.all([stopPostgres(previous.postgres), stopRedis(previous.redis)]);
  }
  save(root, saved);
  const { postgres, redis } = serversOf(root, saved);
  const started = await Promise.allSettled([
    wanted.postgres && startPostgres(postgres),
    wanted.redis && startRedis(redis, say),
  ]);
  const failed = started.find((outcome) => outcome.status === "rejected");
  if (failed !== undefined) {
    if (!inUse) await Promise.all([stopPostgres(postgres), stopRedis(redis)]);
    throw failed.reason;
  }
  return saved;
}

function liveUsers(directory: string): string[] {
  return readdirSync(directory).filter((pid) => isAlive(Number(pid)));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Runs `work` while no other process of this checkout starts or stops the servers. */
async function locked<T>(root: string, work: () => Promise<T>): Promise<T> {
  const unlock = await lockFile(join(root, "servers"), LOCK_TIMEOUT_MS);
  return work().finally(unlock);
}

/** A TCP port on loopback that is free at the moment. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}
