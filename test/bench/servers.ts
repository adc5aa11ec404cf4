import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import pg from "pg";
import { migrateDatabase } from "../../src/db/migrate.ts";
import { type LocalPostgres, postgresUrl, startPostgres, stopPostgres } from "../../src/local/postgres.ts";
import { type LocalRedis, redisUrl, startRedis, stopRedis } from "../../src/local/redis.ts";
import { freePort } from "../../src/local/servers.ts";

/**
 * A Postgres and a Redis of the benchmark's own, with the settings that `npm start` gives them, everything durable; and Postgres with the
 * memory of a server (docs/operations.md, "Postgres's settings").
 */
export interface BenchServers {
  /** A folder that is removed in the end. */
  directory: string;
  postgresPid: number;
  /** Null when Redis runs in a container. */
  redisPid: number | null;
  /** Versions, for the report. */
  versions: { postgres: string; redis: string };
  redisUrl(database: number): string;
  /** Makes and migrates a database; returns its address. */
  makeDatabase(name: string): Promise<string>;
  dropDatabase(name: string): Promise<void>;
  close(): Promise<void>;
}

/** Starts the servers in a temporary folder. */
export async function openBenchServers(say: (line: string) => void): Promise<BenchServers> {
  const directory = mkdtempSync(join(tmpdir(), "voucher-bench-"));
  // Postgres runs as another user when this runs as root.
  chmodSync(directory, 0o755);
  const postgres: LocalPostgres = {
    directory: join(directory, "postgres"),
    port: await freePort(),
    password: "bench",
    settings: [
      `shared_buffers=${Math.floor(totalmem() / 4 / 2 ** 20)}MB`,
      "max_wal_size=4GB",
      "checkpoint_timeout=15min",
    ],
  };
  const redis: LocalRedis = { directory: join(directory, "redis"), port: await freePort() };
  const close = async () => {
    if (existsSync(postgres.directory)) await stopPostgres(postgres);
    await stopRedis(redis);
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await startPostgres(postgres);
    await startRedis(redis, say);
    return {
      directory,
      postgresPid: Number(readFileSync(join(postgres.directory, "postmaster.pid"), "utf8").split("\n")[0]),
      redisPid: await findRedisPid(redisUrl(redis)),
      versions: { postgres: await postgresVersion(postgresUrl(postgres)), redis: await redisVersion(redisUrl(redis)) },
      redisUrl: (database) => redisUrl(redis, database),
      async makeDatabase(name) {
        await runStatement(postgresUrl(postgres), `CREATE DATABASE ${name}`);
        const url = postgresUrl(postgres, name);
        await migrateDatabase(url);
        return url;
      },
      async dropDatabase(name) {
        await runStatement(postgresUrl(postgres), `DROP DATABASE ${name} WITH (FORCE)`);
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function findRedisPid(url: string): Promise<number | null> {
  const pid = Number(/^process_id:(\d+)/m.exec(await redisInfo(url))?.[1]);
  // In a container it has a number of its own there.
  const command = existsSync(`/proc/${pid}/comm`) ? readFileSync(`/proc/${pid}/comm`, "utf8") : "";
  return /redis|valkey/.test(command) ? pid : null;
}

async function redisVersion(url: string): Promise<string> {
  return /^redis_version:(\S+)/m.exec(await redisInfo(url))?.[1] ?? "unknown";
}

async function redisInfo(url: string): Promise<string> {
  const redis = new Redis(url);
  return await redis.info("server").finally(() => redis.disconnect());
}

async function postgresVersion(url: string): Promise<string> {
  return (await runStatement(url, "SHOW server_version"))[0].server_version;
}

// biome-ignore lint/suspicious/noExplicitAny: rows of any statement.
async function runStatement(url: string, statement: string): Promise<any[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return (await client.query(statement).finally(() => client.end())).rows;
}
