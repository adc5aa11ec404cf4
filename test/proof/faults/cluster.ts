import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { migrateDatabase } from "../../../src/platform/db/migrate.ts";
import { openLastingPool } from "../../support/lasting-pool.ts";
import { makeGrantees } from "../../support/logins.ts";
import { promote } from "../../support/own-postgres.ts";
import { startRedisCluster } from "../../support/redis-cluster.ts";
import { findSteadyPort } from "../../support/steady-port.ts";
import { openTcpProxy } from "../../support/tcp-proxy.ts";
import { countChanges, FaultPostgres, type FaultyDatabase } from "./fault-postgres.ts";
import { FaultRedis } from "./fault-redis.ts";
import { ServiceProcess } from "./service-process.ts";

type Env = Record<string, string>;

export interface ClusterOptions {
  redeemWaitMs: number;
  reservationSeconds: number;
  /** Environment variables of every API and worker process. */
  env?: Env;
  /** Further environment variables of each worker process. By default there are two workers. */
  workers?: readonly Env[];
  /** Further environment variables of each of the two API processes. */
  apis?: readonly Env[];
  /** Whether the second API process reaches Redis through its own proxy, which a test can cut. */
  apiWire?: boolean;
  issuerApi?: boolean;
  /** The size of Redis's disk, which only root can limit. Megabytes. */
  redisDiskMb?: number;
  /** The folder that gets a copy of the processes' logs at the end. */
  keepLogsIn?: string | undefined;
  postgres?: ConstructorParameters<typeof FaultPostgres>[2];
  /**
   * Opens a Postgres other than the embedded one, in a folder that does not exist yet, with its logs in another folder.
   */
  openPostgres?: (directory: string, logs: string) => Promise<FaultyDatabase>;
  /** Uses a Redis Cluster instead of one Redis: three masters, each with a replica and two shards. */
  redisCluster?: boolean;
}

export interface ApiProcess {
  process: ServiceProcess;
  url: string;
}

/** The processes that serve one database. */
export interface Deployment {
  options: ClusterOptions;
  apis: ApiProcess[];
  workers: ServiceProcess[];
  /** Superuser access to the database, to issue vouchers, force an order of statements and check the result. */
  db: pg.Pool;
  /** The processes that exited unexpectedly. */
  accidents: string[];
}

/** The service on its own servers. The tests can kill and freeze every process. */
export type Cluster = Awaited<ReturnType<typeof openCluster>>;

const API_PROCESSES = 2;
/** The password of the roles with which processes connect. They have only the service's rights. */
const SERVICE_PASSWORD = "service-under-faults";
/** The prefix of the main deployment's roles. */
const MAIN = "pva";
/** The login of a deployment's issuer API, which has the rights of `voucherctl`. */
const issuerLoginOf = (prefix: string) => `${prefix}_issuer`;
/** The number of shards on a Redis Cluster of three masters. */
export const CLUSTER_SHARDS = 6;

type Servers = Awaited<ReturnType<typeof openServers>>;

/** Opens Postgres, Redis and the proxies in a folder. Of the servers, only a Redis Cluster is started. */
async function openServers(options: ClusterOptions, directory: string, logs: string) {
  const postgresFolder = join(directory, "postgres");
  const postgres =
    (await options.openPostgres?.(postgresFolder, logs)) ??
    new FaultPostgres(postgresFolder, await findSteadyPort(), options.postgres);
  const redis = new FaultRedis(join(directory, "redis"), await findSteadyPort(), options.redisDiskMb);
  /** The replica of `redis`, which runs only during a failover of Redis. */
  const replica = new FaultRedis(join(directory, "replica"), await findSteadyPort());
  /** The proxy between the workers and Redis. */
  const workerWire = await openTcpProxy(redis.url);
  /** The proxy between the second API process and Redis. */
  const apiWire = await openTcpProxy(redis.url);
  /** If not null, the service uses this cluster instead of the servers and proxies above. */
  const redisCluster = options.redisCluster ? await startRedisCluster() : null;
  const close = async () => {
    await Promise.all([postgres, redis, replica, workerWire, apiWire].map((server) => server.close()));
    await redisCluster?.close();
  };
  return { postgres, redis, replica, workerWire, apiWire, redisCluster, close };
}

type Maker = ReturnType<typeof openMaker>;

/** Returns functions that create the service's processes, without starting them, and a superuser's pools. */
function openMaker(options: ClusterOptions, { postgres, redis, redisCluster }: Servers, logs: string) {
  const processes: ServiceProcess[] = [];
  const pools: pg.Pool[] = [];
  const redisEnv = (url: string): Env =>
    redisCluster === null ? { REDIS_URL: url } : { REDIS_URL: redisCluster.url, QUEUE_SHARDS: String(CLUSTER_SHARDS) };
  const makeProcess = (
    name: string,
    script: "src/main.ts" | "workers/main.ts",
    own: Env,
    accidents: string[],
    root?: string,
  ) => {
    const env = {
      DATABASE_URL: serviceUrl(postgres.url),
      ...redisEnv(redis.url),
      BASE_URL: "https://vouchers.test",
      LOG_LEVEL: "warn",
      REDEEM_WAIT_MS: String(options.redeemWaitMs),
      RESERVATION_SECONDS: String(options.reservationSeconds),
      SWEEP_INTERVAL_MS: "500",
      // Rate limits would refuse requests during the faults.
      RATE_LIMIT_RPS: "0",
      MISS_LIMIT_PER_MINUTE: "0",
      ...options.env,
      ...own,
    };
    const logFile = join(logs, `${name}.log`);
    const process = new ServiceProcess({ name, root, script, env, logFile }, (what) => void accidents.push(what));
    processes.push(process);
    return process;
  };
  return {
    redisEnv,
    makeProcess,
    async makeApi(name: string, env: Env, accidents: string[], prefix = MAIN): Promise<ApiProcess> {
      const port = await findSteadyPort();
      const administered = serviceUrl(env.DATABASE_URL ?? postgres.url, issuerLoginOf(prefix));
      const issuer: Env = options.issuerApi ? { ISSUER_API: "true", OPS_DATABASE_URL: administered } : {};
      const process = makeProcess(name, "src/main.ts", { PORT: String(port), ...issuer, ...env }, accidents);
      return { process, url: `http://127.0.0.1:${port}` };
    },
    openDatabase(url: string): pg.Pool {
      const pool = openLastingPool({ connectionString: url, max: 8, connectionTimeoutMillis: 10_000 });
      pools.push(pool);
      return pool;
    },
    killAll: () => Promise.all(processes.map((process) => process.kill())),
    endPools: () => Promise.all(pools.map((pool) => pool.end())),
  };
}

/** Creates deployments with their own databases on the servers of the main deployment. Does not start them. */
function deployBeside(main: Deployment, { postgres }: Servers, maker: Maker) {
  /** Creates a worker and the given number of API processes for a database. */
  const deploy = async (name: string, apis: number): Promise<Deployment> => {
    const url = postgres.urlOf(name);
    const db = maker.openDatabase(url);
    await makeGrantees(db, SERVICE_PASSWORD, name);
    await makeIssuerLogin(db, main.options, name);
    const env = { DATABASE_URL: serviceUrl(url, `${name}_api`) };
    const accidents: string[] = [];
    const made: ApiProcess[] = [];
    while (made.length < apis) made.push(await maker.makeApi(`${name}-api`, env, accidents, name));
    const workers = [maker.makeProcess(`${name}-worker`, "workers/main.ts", env, accidents)];
    return { options: main.options, apis: made, workers, db, accidents };
  };
  return {
    /** Creates an unrelated deployment on the same servers, without starting it. */
    async addDeployment(): Promise<Deployment> {
      await main.db.query("CREATE DATABASE second");
      await migrateDatabase(postgres.urlOf("second"));
      return deploy("second", 1);
    },
    /**
     * Copies the database and creates, but does not start, a worker for the copy that wrongly shares the Redis. No
     * process of the service may be running. The worker may refuse to work and exit, which does not count as a failure.
     */
    async addCopy(): Promise<Deployment> {
      // Postgres copies a database only while it has no connections. The pool reconnects by itself.
      const aside = maker.openDatabase(postgres.urlOf("template1"));
      const original = new URL(postgres.url).pathname.slice(1);
      await aside.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [original]);
      await aside.query(`CREATE DATABASE copy TEMPLATE ${original}`);
      return deploy("copy", 0);
    },
  };
}

/** A physical copy of the running Postgres. Its API process and its worker wrongly use the original's Redis. */
interface HotCopy {
  db: pg.Pool;
  worker: ServiceProcess;
  api: ApiProcess;
  promote(): Promise<void>;
  /** Stops the copy. Returns how many changes callers made on it. */
  stop(): Promise<number>;
}

/** Starts a physical copy of the running embedded Postgres. Creates, but does not start, its processes. */
async function startHotCopy(postgres: FaultyDatabase, maker: Maker): Promise<HotCopy> {
  const copy = await embedded(postgres).startHotCopy();
  const db = openLastingPool({ connectionString: copy.url, max: 2 });
  const before = await countChanges(db);
  const env = { DATABASE_URL: serviceUrl(copy.url) };
  const worker = maker.makeProcess("hot-copy-worker", "workers/main.ts", env, []);
  const api = await maker.makeApi("hot-copy-api", env, []);
  const stop = async () => {
    await Promise.all([worker.kill(), api.process.kill()]);
    const made = (await countChanges(db)) - before;
    await db.end();
    await copy.close();
    return made;
  };
  return { db, worker, api, promote: () => promote(copy.url), stop };
}

/** Starts the servers and migrates the database. `heal` starts the API and worker processes. */
export async function openCluster(options: ClusterOptions) {
  const directory = mkdtempSync(join(tmpdir(), "voucher-faults-"));
  // Under root, Postgres runs as another user, who must read this folder.
  chmodSync(directory, 0o755);
  const logs = join(directory, "logs");
  mkdirSync(logs);
  const servers = await openServers(options, directory, logs);
  const { close: closeServers, ...opened } = servers;
  const { postgres, redis, redisCluster } = opened;
  const maker = openMaker(options, servers, logs);
  const main: Deployment = { options, apis: [], workers: [], db: maker.openDatabase(postgres.url), accidents: [] };
  const { workers, accidents } = main;
  /** Creates a worker process with further variables, without starting it. */
  const addWorker = (env: Env) => {
    const own = { ...maker.redisEnv(opened.workerWire.url), ...env };
    const worker = maker.makeProcess(`worker-${workers.length + 1}`, "workers/main.ts", own, accidents);
    workers.push(worker);
    return worker;
  };
  const cluster = {
    ...main,
    ...opened,
    ...deployBeside(main, servers, maker),
    addWorker,
    /** Creates, but does not start, a worker process of the log, with the variables of its key, anchor and policy. */
    addTlogWorker(env: Env): ServiceProcess {
      const own = { WORKER_QUEUES: "log", LOG_INTERVAL_MS: "200", ...env };
      return addWorker({ DATABASE_URL: serviceUrl(postgres.url, "pva_log"), ...own });
    },
    /** Creates, but does not start, an API and a worker process of another release, from the release's folder. */
    async addRelease(name: string, root: string): Promise<{ api: ApiProcess; worker: ServiceProcess }> {
      const PORT = String(await findSteadyPort());
      const process = maker.makeProcess(`${name}-api`, "src/main.ts", { PORT }, accidents, root);
      const worker = maker.makeProcess(`${name}-worker`, "workers/main.ts", {}, accidents, root);
      return { api: { process, url: `http://127.0.0.1:${PORT}` }, worker };
    },
    startHotCopy: () => startHotCopy(postgres, maker),
    /** Ends freezes, and starts stopped servers and processes. Resolves once the servers run. */
    async heal(): Promise<void> {
      const ours = processesOf(main);
      for (const frozen of [postgres, redis, ...ours]) frozen.thaw();
      await Promise.all([postgres.start(), redisCluster?.heal() ?? redis.start()]);
      for (const process of ours) process.start();
    },
    async close(): Promise<void> {
      await maker.killAll();
      await closeServers();
      await maker.endPools();
      if (options.keepLogsIn !== undefined) cpSync(logs, options.keepLogsIn, { recursive: true });
      rmSync(directory, { recursive: true, force: true });
    },
  };
  await startMain(main, servers, maker).catch(async (error) => {
    await cluster.close();
    throw error;
  });
  for (const env of options.workers ?? [{}, {}]) addWorker(env);
  return cluster;
}

/** Creates the API processes of the main deployment, starts its servers and migrates its database. */
async function startMain({ options, apis, db, accidents }: Deployment, servers: Servers, maker: Maker): Promise<void> {
  const { postgres, redis, redisCluster, apiWire } = servers;
  for (let i = 1; i <= API_PROCESSES; i++) {
    const env = { ...(i === 2 && options.apiWire && maker.redisEnv(apiWire.url)), ...options.apis?.[i - 1] };
    apis.push(await maker.makeApi(`api-${i}`, env, accidents));
  }
  await Promise.all([postgres.start(), redisCluster ?? redis.start()]);
  await migrateDatabase(postgres.url);
  await makeGrantees(db, SERVICE_PASSWORD);
  await makeIssuerLogin(db, options, MAIN);
}

async function makeIssuerLogin(db: pg.Pool, { issuerApi }: ClusterOptions, prefix: string): Promise<void> {
  const login = issuerLoginOf(prefix);
  if (issuerApi) await db.query(`CREATE ROLE ${login} LOGIN PASSWORD '${SERVICE_PASSWORD}' IN ROLE ${prefix}_admin`);
}

/** Returns the embedded Postgres. @throws Error if Postgres runs under Patroni. */
export function embedded(postgres: FaultyDatabase): FaultPostgres {
  if (postgres instanceof FaultPostgres) return postgres;
  throw new Error("this needs the embedded Postgres");
}

export function processesOf({ apis, workers }: Pick<Deployment, "apis" | "workers">): ServiceProcess[] {
  return [...apis.map((api) => api.process), ...workers];
}

/** The URL of a database for a login with the service's rights. */
export function serviceUrl(ownerUrl: string, username = "pva_api"): string {
  return Object.assign(new URL(ownerUrl), { username, password: SERVICE_PASSWORD }).href;
}
