import { Redis } from "ioredis";
import pg from "pg";
import { inject } from "vitest";
import type { Login } from "./logins.ts";

/** A database of its own and an empty Redis database, for one test file. */
export interface TestServers {
  /** As the API and the workers connect: with the rights of `pva_api`. */
  databaseUrl: string;
  /** As voucherctl connects: with the rights of `pva_admin`. */
  adminUrl: string;
  /** As migrations connect: as the database's owner. */
  ownerUrl: string;
  redisUrl: string;
  /** The owner's access to the file's database, for making supply, looking and forcing interleavings. */
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
  const ownerUrl = withPath(inject("databaseUrl"), name);
  const logins = inject("logins");
  // Database 0 stays untouched: it may be somebody's.
  const redisUrl = withPath(inject("redisUrl"), String(Number(process.env.VITEST_POOL_ID ?? 1)));
  const db = new pg.Pool({ connectionString: ownerUrl, max: 8 });
  db.on("error", () => undefined);
  const redis = new Redis(redisUrl);
  await redis.flushdb();
  return {
    databaseUrl: withLogin(ownerUrl, logins.api),
    adminUrl: withLogin(ownerUrl, logins.admin),
    ownerUrl,
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
