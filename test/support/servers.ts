import { Redis } from "ioredis";
import pg from "pg";
import { inject } from "vitest";

/** A database of its own and an empty Redis database, for one test file. */
export interface TestServers {
  databaseUrl: string;
  redisUrl: string;
  /** Superuser access to the file's database, for looking and for forcing interleavings. */
  db: pg.Pool;
  redis: Redis;
  close(): Promise<void>;
}

let clones = 0;

/** Clones the migrated template and empties the Redis database that belongs to this worker of vitest. */
export async function openTestServers(): Promise<TestServers> {
  clones += 1;
  const name = `voucher_test_${process.pid}_${clones}`;
  await administer(`CREATE DATABASE ${name} TEMPLATE ${inject("template")}`);
  const databaseUrl = withPath(inject("databaseUrl"), name);
  // Database 0 stays untouched: it may be somebody's.
  const redisUrl = withPath(inject("redisUrl"), String(Number(process.env.VITEST_POOL_ID ?? 1)));
  const db = new pg.Pool({ connectionString: databaseUrl, max: 8 });
  db.on("error", () => undefined);
  const redis = new Redis(redisUrl);
  await redis.flushdb();
  return {
    databaseUrl,
    redisUrl,
    db,
    redis,
    async close() {
      redis.disconnect();
      await db.end();
      await administer(`DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

function withPath(url: string, path: string): string {
  const changed = new URL(url);
  changed.pathname = `/${path}`;
  return changed.href;
}

async function administer(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject("databaseUrl") });
  await client.connect();
  await client.query(statement).finally(() => client.end());
}
