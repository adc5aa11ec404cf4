import { rmSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { type LocalPostgres, postgresUrl, startPostgres, stopPostgres } from "../../src/local/postgres.ts";
import { dockerAnswers, type LocalRedis, redisUrl, startRedis, stopRedis } from "../../src/local/redis.ts";
import { migrateDatabase } from "../../src/platform/db/migrate.ts";
import { makeDataDirectory } from "./data-directory.ts";
import { makeTestLogins, type TestLogins } from "./logins.ts";
import { startRedisCluster } from "./redis-cluster.ts";
import { findSteadyPort } from "./steady-port.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** A database on the test server. Connections to it create the other databases. */
    databaseUrl: string;
    redisUrl: string;
    /** The number of shards of the services that tests start. */
    queueShards: number;
    /** Name of the migrated database that test files clone. */
    template: string;
    /** Logins with the rights of the service's processes and of voucherctl. */
    logins: TestLogins;
  }
}

type Stop = () => Promise<unknown>;

/**
 * Provides real servers: those of DATABASE_URL and REDIS_URL, or else containers if Docker is available, or else
 * embedded ones. Migrates one database as a template. If BREAK_SCHEMA is set, runs its SQL, which removes a guard from
 * the template: see test/proof/guards.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const stops: Stop[] = [];
  const containers = (!process.env.DATABASE_URL || !process.env.REDIS_URL) && dockerAnswers();
  // Containers publish ports at this address. In a container on the host's network, testcontainers cannot find it.
  process.env.TESTCONTAINERS_HOST_OVERRIDE ??= "127.0.0.1";
  const databaseUrl = process.env.DATABASE_URL || (await (containers ? postgresContainer : embeddedPostgres)(stops));
  const shards = Number(process.env.TEST_CLUSTER_SHARDS || 0);
  const redis = await (shards > 0 ? redisCluster : redisServer)(stops, containers);
  const template = `voucher_test_template_${process.pid}`;
  project.provide("redisUrl", redis);
  project.provide("queueShards", Math.max(1, shards));
  project.provide("template", template);
  await administer(databaseUrl, `CREATE DATABASE ${template}`);
  const url = new URL(databaseUrl);
  url.pathname = `/${template}`;
  await migrateDatabase(url.href);
  if (process.env.BREAK_SCHEMA) await administer(url.href, process.env.BREAK_SCHEMA);
  const { logins, remove } = await makeTestLogins(url.href);
  project.provide("logins", logins);
  project.provide("databaseUrl", databaseUrl);
  return async () => {
    await administer(databaseUrl, `DROP DATABASE ${template} WITH (FORCE)`);
    await remove(databaseUrl);
    for (const stop of stops) await stop();
  };
}

/** Starts a Redis Cluster on loopback, for `npm run test:cluster`. */
async function redisCluster(stops: Stop[]): Promise<string> {
  const cluster = await startRedisCluster();
  stops.unshift(() => cluster.close());
  return cluster.url;
}

async function redisServer(stops: Stop[], containers: boolean): Promise<string> {
  if (process.env.REDIS_URL) await useGivenRedis(process.env.REDIS_URL, stops);
  return process.env.REDIS_URL || (containers ? redisContainer : embeddedRedis)(stops);
}

/** The Redis databases of the vitest workers, one each. Database 0 may be in use. */
const REDIS_DATABASES = [1, 2, 3, 4, 5, 6, 7];

/** Throws if Redis contains data, and empties Redis after the tests. */
async function useGivenRedis(url: string, stops: Stop[]): Promise<void> {
  const onEach = async (work: (client: Redis, database: number) => Promise<unknown>) => {
    for (const database of REDIS_DATABASES) {
      const client = new Redis(url, { db: database });
      await work(client, database).finally(() => client.disconnect());
    }
  };
  await onEach(async (client, database) => {
    if ((await client.dbsize()) > 0)
      throw new Error(`Database ${database} of REDIS_URL is not empty; the tests would empty it.`);
  });
  stops.push(() => onEach((client) => client.flushdb()));
}

async function administer(databaseUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(statement).finally(() => client.end());
}

const POSTGRES_IMAGE = process.env.POSTGRES_IMAGE || "postgres:17-alpine";
const REDIS_IMAGE = process.env.REDIS_IMAGE || "redis:7.4-alpine";

interface HostConfig {
  PortBindings?: Record<string, { HostIp?: string }[]>;
}

/** Publishes a container's ports on loopback only. */
function bindToLoopback({ PortBindings = {} }: HostConfig): void {
  for (const binding of Object.values(PortBindings).flat()) binding.HostIp = "127.0.0.1";
}

/** More than the test files that run at once need: each may start four processes with up to 40 connections. */
const MAX_CONNECTIONS = "max_connections=1200";

async function postgresContainer(stops: Stop[]): Promise<string> {
  const { PostgreSqlContainer } = await import("@testcontainers/postgresql");
  class Container extends PostgreSqlContainer {
    protected override async beforeContainerCreated() {
      bindToLoopback(this.hostConfig as HostConfig);
    }
  }
  const started = await new Container(POSTGRES_IMAGE)
    .withCommand(["postgres", "-c", MAX_CONNECTIONS])
    .start()
    .catch((error) => sayMissing(POSTGRES_IMAGE, error));
  if (started === null) return embeddedPostgres(stops);
  stops.push(() => started.stop());
  return started.getConnectionUri();
}

async function redisContainer(stops: Stop[]): Promise<string> {
  const { RedisContainer } = await import("@testcontainers/redis");
  class Container extends RedisContainer {
    protected override async beforeContainerCreated() {
      bindToLoopback(this.hostConfig as HostConfig);
    }
  }
  const started = await new Container(REDIS_IMAGE).start().catch((error) => sayMissing(REDIS_IMAGE, error));
  if (started === null) return embeddedRedis(stops);
  stops.push(() => started.stop());
  return started.getConnectionUrl();
}

function sayMissing(image: string, error: Error): null {
  console.log(`The image ${image} cannot be used (${error.message}), so the tests take an embedded server instead.`);
  return null;
}

async function embeddedPostgres(stops: Stop[]): Promise<string> {
  const server: LocalPostgres = {
    directory: join(temporaryDirectory(stops), "postgres"),
    port: await findSteadyPort(),
    password: "test",
    // This data need not survive a crash. Tests of crashes start their own Postgres servers.
    // Hashing a password 4 096 times, on both sides, would cost more than the rest of a connection. A database is
    // dropped before a vacuum would help its tests.
    settings: ["fsync=off", "full_page_writes=off", "autovacuum=off", "scram_iterations=1", MAX_CONNECTIONS],
  };
  await startPostgres(server);
  stops.unshift(() => stopPostgres(server));
  await administer(postgresUrl(server), `ALTER ROLE CURRENT_USER PASSWORD '${server.password}'`);
  return postgresUrl(server);
}

async function embeddedRedis(stops: Stop[]): Promise<string> {
  const server: LocalRedis = { directory: join(temporaryDirectory(stops), "redis"), port: await findSteadyPort() };
  await startRedis(server, (line) => console.log(line));
  stops.unshift(() => stopRedis(server));
  return redisUrl(server);
}

function temporaryDirectory(stops: Stop[]): string {
  const directory = makeDataDirectory("voucher-test-");
  stops.push(async () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
