import { once } from "node:events";
import { Cluster, Redis } from "ioredis";
import pg from "pg";
import { inject } from "vitest";
import { adoptDatabase } from "../../src/db/deployment.ts";
import { leaseKey } from "../../src/holds/lease.ts";
import { findShard, type Shard } from "../../src/queues/shards.ts";
import { parseRedisUrl } from "../../src/redis/addresses.ts";
import { mastersOf } from "../../src/redis/connections.ts";
import { cloneOnNodes, dropOnNodes } from "./citus.ts";
import type { Login } from "./logins.ts";

/** A new database and an empty Redis database for one test file. */
export interface TestServers {
  /** The address for the API and the workers, with the rights of `pva_api`. */
  databaseUrl: string;
  /** The address for the log's sequencer, with the rights of `pva_log`. */
  logUrl: string;
  /** The address for voucherctl, with the rights of `pva_admin`. */
  adminUrl: string;
  /** The address for migrations, as the database's owner. */
  ownerUrl: string;
  redisUrl: string;
  /** A pool of the owner: to issue vouchers, check the result and force interleavings. */
  db: pg.Pool;
  redis: Redis;
  /** The database is a deployment of its own. */
  deploymentId: string;
  /** The number of shards that commands use. */
  queueShards: [number];
  /** The only shard of every queue, and the prefix of its keys. */
  shard: Shard;
  queuePrefix: string;
  leaseKey(voucherId: string): string;
  /** Deletes everything in Redis. */
  emptyRedis(): Promise<unknown>;
  /** Registers what uses the servers; closeOpened closes it, the latest first. A closer may run twice. */
  onClose(closer: () => Promise<unknown>): void;
  closeOpened(): Promise<void>;
  /** Closes what is still open and drops the database. */
  close(): Promise<void>;
}

let clones = 0;

async function openCluster(redisUrl: string): Promise<Cluster> {
  const cluster = new Cluster(parseRedisUrl(redisUrl).map(({ href }) => href));
  await once(cluster, "ready");
  return cluster;
}

/** Clones the migrated template and empties the Redis database of this vitest worker. */
export async function openTestServers(): Promise<TestServers> {
  clones += 1;
  const name = `voucher_test_${process.pid}_${clones}`;
  const nodes = inject("citusNodes");
  if (nodes.length > 0) await cloneOnNodes(nodes, name, inject("template"));
  else await administer(`CREATE DATABASE ${name} TEMPLATE ${inject("template")}`);
  const ownerUrl = withPath(inject("databaseUrl"), name);
  const logins = inject("logins");
  // Database 0 may be in use.
  const onCluster = inject("redisUrl").includes(",");
  const redisUrl = onCluster
    ? inject("redisUrl")
    : withPath(inject("redisUrl"), String(Number(process.env.VITEST_POOL_ID ?? 1)));
  const db = new pg.Pool({ connectionString: ownerUrl, max: 8 });
  db.on("error", () => undefined);
  // A Cluster has the commands of a Redis, except that those without a key reach one node only.
  const redis = onCluster ? ((await openCluster(redisUrl)) as unknown as Redis) : new Redis(redisUrl);
  const emptyRedis = () => Promise.all(mastersOf(redis).map((master) => master.flushdb()));
  await emptyRedis();
  const deploymentId = await adoptDatabase(db);
  const shard = findShard(deploymentId, 0, 1);
  const closers: (() => Promise<unknown>)[] = [];
  const closeOpened = async () => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  return {
    databaseUrl: withLogin(ownerUrl, logins.api),
    logUrl: withLogin(ownerUrl, logins.log),
    adminUrl: withLogin(ownerUrl, logins.admin),
    ownerUrl,
    redisUrl,
    db,
    redis,
    deploymentId,
    queueShards: [inject("queueShards")],
    shard,
    queuePrefix: shard.prefix,
    leaseKey: (voucherId) => leaseKey(deploymentId, voucherId),
    emptyRedis,
    onClose: (closer) => void closers.push(closer),
    closeOpened,
    async close() {
      await closeOpened();
      redis.disconnect();
      await db.end();
      if (nodes.length > 0) await dropOnNodes(nodes, name);
      else await administer(`DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

function withPath(url: string, path: string): string {
  const changed = new URL(url);
  changed.pathname = `/${path}`;
  return changed.href;
}

function withLogin(url: string, login: Login | null): string {
  if (login === null) return url;
  const changed = new URL(url);
  changed.username = login.name;
  changed.password = login.password;
  return changed.href;
}

async function administer(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject("databaseUrl") });
  await client.connect();
  await client.query(statement).finally(() => client.end());
}
