import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import pg from "pg";
import { leaseKey } from "../../src/holds/lease.ts";
import { useLocalUserKeys } from "../../src/local/user-keys.ts";
import type { Surroundings } from "./contenders.ts";
import type { LoadClient } from "./load/run-load.ts";
import type { BenchServers } from "./servers.ts";
import { type Partner, Supply } from "./supply.ts";

/** What one case plays on: a database and a Redis database of its own, vouchers, and everything to start contenders with. */
export interface Stage {
  servers: BenchServers;
  client: LoadClient;
  surroundings: Surroundings;
  supply: Supply;
  partner: Partner;
  /** Superuser access, for looking. */
  db: pg.Pool;
  /** Folder for the case's files. */
  directory: string;
  say: (line: string) => void;
  /** Aborted when everything is to end. */
  signal: AbortSignal;
  /** Ends every hold, as time would, and removes the leases. */
  endHolds(): Promise<void>;
  close(): Promise<void>;
}

/** What stages are made of. */
export interface StageOptions {
  servers: BenchServers;
  client: LoadClient;
  profileDirectory: string | null;
  say: (line: string) => void;
  signal: AbortSignal;
}

/** Redis databases that the embedded server has; each stage takes the next. */
const REDIS_DATABASES = 64;
let stages = 0;

/** Everything that a deployment can switch on, on; limits on, and so high that nobody meets them. */
const EVERYTHING_ON = {
  LOG_LEVEL: "info",
  RATE_LIMIT_RPS: "1000000",
  MISS_LIMIT_PER_MINUTE: "60",
  OPS_TOKEN: "bench-ops-token-of-decent-length",
  RESERVATION_TOKEN_SECRET: "bench-reservation-token-secret",
  BASE_URL: "http://localhost:3000",
};

/** Makes a stage without vouchers. */
export async function openStage(options: StageOptions, env: Record<string, string> = {}): Promise<Stage> {
  const { servers, client, profileDirectory, say, signal } = options;
  const number = stages++;
  const databaseUrl = await servers.makeDatabase(`bench_${number}`);
  const redisUrl = servers.redisUrl(number % REDIS_DATABASES);
  const directory = join(servers.directory, `stage-${number}`);
  mkdirSync(directory);
  await withRedis(redisUrl, (redis) => redis.flushdb());
  const supply = new Supply(databaseUrl, directory, signal);
  const partner = await supply.makePartner("Bench");
  const db = new pg.Pool({ connectionString: databaseUrl, max: 2 });
  const userKeysUrl = await useLocalUserKeys(directory);
  return {
    servers,
    client,
    surroundings: {
      databaseUrl,
      redisUrl,
      env: { ...EVERYTHING_ON, AUTH_JWKS_URL: userKeysUrl, ...env },
      logDirectory: directory,
      profileDirectory,
    },
    supply,
    partner,
    db,
    directory,
    say,
    signal,
    async endHolds() {
      await db.query("UPDATE reservations SET state = 'Expired', ended_at = clock_timestamp() WHERE state = 'Live'");
      await withRedis(redisUrl, removeLeases);
    },
    async close() {
      await db.end();
      await withRedis(redisUrl, (redis) => redis.flushdb());
      await servers.dropDatabase(`bench_${number}`);
    },
  };
}

async function withRedis(url: string, work: (redis: Redis) => Promise<unknown>): Promise<void> {
  const redis = new Redis(url);
  await work(redis).finally(() => redis.disconnect());
}

async function removeLeases(redis: Redis): Promise<void> {
  for await (const keys of redis.scanStream({ match: leaseKey("*"), count: 1_000 })) {
    if (keys.length > 0) await redis.unlink(keys);
  }
}
