import { once } from "node:events";
import { Cluster, Redis } from "ioredis";
import pg from "pg";
import { inject, it } from "vitest";
import { leaseKey } from "../../src/core/reserve/lease.ts";
import { DatabaseFence } from "../../src/platform/db/database-fence.ts";
import { adoptDatabase } from "../../src/platform/db/deployment.ts";
import { openPool } from "../../src/platform/db/pool.ts";
import { openLogger } from "../../src/platform/logger.ts";
import { findShard, listShards, type Shard, shardOf } from "../../src/platform/queues/shards.ts";
import { parseRedisUrl } from "../../src/platform/redis/addresses.ts";
import { mastersOf } from "../../src/platform/redis/connections.ts";
import { openLastingPool } from "./lasting-pool.ts";
import type { Login } from "./logins.ts";

/** A new database and an empty Redis database for one test file. */
export type TestServers = Awaited<ReturnType<typeof openTestServers>>;

let clones = 0;

/** Whether the tests run on a Redis Cluster. */
const ON_CLUSTER = inject("redisUrl").includes(",");

/** A test that needs a single Redis server, for a proxy or its data. `npm run test:cluster` skips it. */
export const itOnOneRedis = it.skipIf(ON_CLUSTER);

/** Opens a connection to one Redis, or to all nodes of a cluster. */
export async function connectRedis(redisUrl: string): Promise<Redis> {
  if (!redisUrl.includes(",")) return new Redis(redisUrl);
  const cluster = new Cluster(parseRedisUrl(redisUrl).map(({ href }) => href));
  await once(cluster, "ready");
  const onEach = <T>(run: (master: Redis) => Promise<T>) => Promise.all(mastersOf(cluster).map(run));
  const existsOne = cluster.exists.bind(cluster);
  return Object.assign(cluster, {
    keys: async (pattern: string) => (await onEach((master) => master.keys(pattern))).flat(),
    flushdb: () => onEach((master) => master.flushdb()),
    exists: async (...keys: (string | string[])[]) =>
      (await Promise.all(keys.flat().map((key) => existsOne(key)))).reduce((sum, found) => sum + found, 0),
  }) as unknown as Redis;
}

/** Clones the migrated template, and opens a pool as its owner. A lost connection does not end the test process. */
async function cloneTemplate(): Promise<{ name: string; ownerUrl: string; db: pg.Pool }> {
  clones += 1;
  const name = `voucher_test_${process.pid}_${clones}`;
  // Copying the files takes half the time of the default, which writes every page to the WAL.
  await administer(`CREATE DATABASE ${name} TEMPLATE ${inject("template")} STRATEGY FILE_COPY`);
  const ownerUrl = withPath(inject("databaseUrl"), name);
  const db = openLastingPool({ connectionString: ownerUrl, max: 8 });
  return { name, ownerUrl, db };
}

/** Clones the migrated template and empties this worker's Redis. `shardCount` is the number of a queue's shards. */
export async function openTestServers(shardCount = inject("queueShards")) {
  const { name, ownerUrl, db } = await cloneTemplate();
  const logins = inject("logins");
  // The tests do not use Redis database 0, which may contain other data.
  const redisUrl = ON_CLUSTER
    ? inject("redisUrl")
    : withPath(inject("redisUrl"), String(Number(process.env.VITEST_POOL_ID ?? 1)));
  const redis = await connectRedis(redisUrl);
  await redis.flushdb();
  const deploymentId = await adoptDatabase(db);
  const shards = listShards(deploymentId, shardCount);
  const closers: (() => Promise<unknown>)[] = [];
  const closeOpened = async () => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  return {
    /** The address for the API and the workers, with the rights of `pva_api`. */
    databaseUrl: withLogin(ownerUrl, logins.api),
    /** The address for the log's sequencer, with the rights of `pva_log`. */
    logUrl: withLogin(ownerUrl, logins.log),
    /** The address for voucherctl, with the rights of `pva_admin`. */
    adminUrl: withLogin(ownerUrl, logins.admin),
    /** The address for migrations, as the database's owner. */
    ownerUrl,
    redisUrl,
    /** A pool of the owner, to issue vouchers, check the result and force an order of statements. */
    db,
    /** On a cluster, `keys`, `flushdb` and `exists` reach all masters. Other commands without a key reach one node. */
    redis,
    /** The deployment's id. Each test database is a deployment of its own. */
    deploymentId,
    /** The number of shards that commands use. */
    queueShards: [shardCount] as [number],
    /** The shards of queues with a job for each voucher. */
    shards,
    /** The shard of a voucher's jobs. */
    shardOf: (voucherId: string) => shards[shardOf(voucherId, shards.length)] as Shard,
    /** The prefix of keys in the first shard (the only one on a single Redis), and of queues without shards. */
    queuePrefix: findShard(deploymentId, 0, shardCount).prefix,
    leaseKey: (voucherId: string) => leaseKey(deploymentId, voucherId),
    /** Registers a closer. closeOpened runs all closers, the latest first. A closer may run twice. */
    onClose: (closer: () => Promise<unknown>) => void closers.push(closer),
    closeOpened,
    /** Closes all open resources and drops the database. */
    async close() {
      await closeOpened();
      redis.disconnect();
      await db.end();
      await administer(`DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

export function openServicePool(databaseUrl: string, max = 1): pg.Pool {
  const log = openLogger("silent", "test");
  return openPool({
    databaseUrl,
    max,
    applicationName: "test",
    use: "service",
    deployment: new DatabaseFence(log),
    log,
  });
}

function withPath(url: string, path: string): string {
  return Object.assign(new URL(url), { pathname: `/${path}` }).href;
}

export function withLogin(url: string, login: Login | null): string {
  return login === null ? url : Object.assign(new URL(url), { username: login.name, password: login.password }).href;
}

async function administer(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject("databaseUrl") });
  await client.connect();
  await client.query(statement).finally(() => client.end());
}
