import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import pg from "pg";
import { leaseKey } from "../../src/holds/lease.ts";
import { mintUserToken, useLocalUserKeys } from "../../src/local/user-keys.ts";
import type { Surroundings } from "./contenders.ts";
import { issueVouchers } from "./issue-vouchers.ts";
import type { LoadClient } from "./load/run-load.ts";
import type { BenchServers } from "./servers.ts";
import { Subjects } from "./subjects.ts";
import { makePartner, type Partner, type Voucherctl } from "./voucherctl.ts";

/** What a case plays on: a database of its own, supply, and everything to start contenders with. */
export interface Stage {
  servers: BenchServers;
  client: LoadClient;
  surroundings: Surroundings;
  ctl: Voucherctl;
  partner: Partner;
  /** Codes of the partner's vouchers that nothing has happened to. */
  vouchers: Subjects;
  /** Tokens of users who have not claimed anything; there is a voucher to claim for each. */
  users: Subjects;
  /** Superuser access, for looking. */
  db: pg.Pool;
  /** Folder for the case's files. */
  directory: string;
  say: (line: string) => void;
  /** Aborted when everything is to end. */
  signal: AbortSignal;
  /** Issues vouchers. */
  addVouchers(count: number): Promise<void>;
  /** Makes users, and issues a batch of as many vouchers that they may claim. */
  addUsers(count: number): Promise<void>;
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

/** Redis databases that the embedded server has; each contender takes the next. */
const REDIS_DATABASES = 64;
/** How long users' tokens work: longer than any run. Milliseconds. */
const TOKEN_MS = 86_400_000;

let stages = 0;
let redisDatabases = 0;
let usersMade = 0;

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
  const database = `bench_${number}`;
  const databaseUrl = await servers.makeDatabase(database);
  const redisUrls: string[] = [];
  const directory = join(servers.directory, `stage-${number}`);
  mkdirSync(directory);
  const ctl: Voucherctl = { databaseUrl, signal };
  const partner = await makePartner(ctl, "Bench");
  const db = new pg.Pool({ connectionString: databaseUrl, max: 2 });
  const userKeysUrl = await useLocalUserKeys(directory);
  const vouchers = new Subjects();
  const users = new Subjects();
  return {
    servers,
    client,
    surroundings: {
      databaseUrl,
      redisUrl() {
        const url = servers.redisUrl(redisDatabases++ % REDIS_DATABASES);
        redisUrls.push(url);
        return url;
      },
      env: { ...EVERYTHING_ON, AUTH_JWKS_URL: userKeysUrl, ...env },
      logDirectory: directory,
      profileDirectory,
    },
    ctl,
    partner,
    vouchers,
    users,
    db,
    directory,
    say,
    signal,
    async addVouchers(count) {
      const { codes, seconds } = await issueVouchers({ ctl, db, directory }, partner, count);
      vouchers.add(codes);
      say(`${count} vouchers issued in ${seconds.toFixed(1)} s`);
    },
    async addUsers(count) {
      await issueVouchers({ ctl, db, directory }, partner, count, { keep: 1, windows: ["--claim"] });
      const tokens: string[] = [];
      for (let i = 0; i < count; i++) tokens.push(await mintUserToken(directory, `user-${usersMade++}`, TOKEN_MS));
      users.add(tokens);
      say(`${count} users made`);
    },
    async endHolds() {
      await db.query("UPDATE reservations SET state = 'Expired', ended_at = clock_timestamp() WHERE state = 'Live'");
      for (const url of redisUrls) await withRedis(url, removeLeases);
    },
    async close() {
      await db.end();
      for (const url of redisUrls) await withRedis(url, (redis) => redis.flushdb());
      await servers.dropDatabase(database);
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
