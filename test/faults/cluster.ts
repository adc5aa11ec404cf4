import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { migrateDatabase } from "../../src/db/migrate.ts";
import { makeRoles } from "../support/logins.ts";
import { FaultPostgres } from "./fault-postgres.ts";
import { FaultRedis } from "./fault-redis.ts";
import { ServiceProcess } from "./service-process.ts";

export interface ClusterOptions {
  redeemWaitMs: number;
  reservationSeconds: number;
  /** More variables for every API and worker process. */
  env?: Record<string, string>;
  /** Where the processes' logs are copied to in the end, for people who look; nowhere when left out. */
  keepLogsIn?: string | undefined;
}

/** One process of the service with its address. */
export interface ApiProcess {
  process: ServiceProcess;
  url: string;
}

/** The whole service on servers of its own, every process of which may be killed and frozen. */
export interface Cluster {
  options: ClusterOptions;
  postgres: FaultPostgres;
  redis: FaultRedis;
  apis: ApiProcess[];
  workers: ServiceProcess[];
  /** Superuser access to the database, for making supply, forcing interleavings and looking. */
  db: pg.Pool;
  /** What ended although nobody asked it to. */
  accidents: string[];
  /** Adds a worker process whose environment differs, without starting it. */
  addWorker(env: Record<string, string>): ServiceProcess;
  /** Thaws what is frozen and starts what is gone; resolves once the servers run. */
  heal(): Promise<void>;
  /** Ends every process and removes every file. */
  close(): Promise<void>;
}

const API_PROCESSES = 2;
/** The processes under faults have the rights of the service and no others. */
const SERVICE_PASSWORD = "service-under-faults";
const WORKER_PROCESSES = 2;
/** Below the ports that systems give to outgoing connections: nobody takes a port while its owner is dead. */
const FIRST_PORT = 20_000;
const LAST_PORT = 32_000;

/** Starts servers and migrates the database; the API and worker processes start with `heal`. */
export async function openCluster(options: ClusterOptions): Promise<Cluster> {
  const directory = mkdtempSync(join(tmpdir(), "voucher-faults-"));
  // Postgres runs as another user when the tests run as root.
  chmodSync(directory, 0o755);
  mkdirSync(join(directory, "logs"));
  const postgres = new FaultPostgres(join(directory, "postgres"), await findSteadyPort());
  const redis = new FaultRedis(join(directory, "redis"), await findSteadyPort());
  const db = new pg.Pool({ connectionString: postgres.url, max: 8, connectionTimeoutMillis: 10_000 });
  db.on("error", () => undefined);
  const accidents: string[] = [];
  const workers: ServiceProcess[] = [];
  const apis: ApiProcess[] = [];

  const makeProcess = (name: string, script: "src/main.ts" | "workers/main.ts", env: Record<string, string>) =>
    new ServiceProcess(
      { name, script, env: { ...sharedEnv(), ...env }, logFile: join(directory, "logs", `${name}.log`) },
      (what) => void accidents.push(what),
    );
  const sharedEnv = () => ({
    DATABASE_URL: serviceUrl(postgres.url),
    REDIS_URL: redis.url,
    BASE_URL: "https://vouchers.test",
    LOG_LEVEL: "warn",
    REDEEM_WAIT_MS: String(options.redeemWaitMs),
    RESERVATION_SECONDS: String(options.reservationSeconds),
    SWEEP_INTERVAL_MS: "500",
    // Faults are what is tested here, not limits.
    RATE_LIMIT_RPS: "0",
    MISS_LIMIT_PER_MINUTE: "0",
    ...options.env,
  });
  const addWorker = (env: Record<string, string>) => {
    const worker = makeProcess(`worker-${workers.length + 1}`, "workers/main.ts", env);
    workers.push(worker);
    return worker;
  };
  const cluster: Cluster = {
    options,
    postgres,
    redis,
    apis,
    workers,
    db,
    accidents,
    addWorker,
    async heal() {
      const processes = [...apis.map((api) => api.process), ...workers];
      for (const frozen of [postgres, redis, ...processes]) frozen.thaw();
      await Promise.all([postgres.start(), redis.start()]);
      for (const process of processes) process.start();
    },
    async close() {
      await Promise.all([...apis.map((api) => api.process), ...workers].map((process) => process.kill()));
      await Promise.all([postgres.kill(), redis.close()]);
      await db.end();
      if (options.keepLogsIn !== undefined) cpSync(join(directory, "logs"), options.keepLogsIn, { recursive: true });
      rmSync(directory, { recursive: true, force: true });
    },
  };
  try {
    for (let i = 1; i <= API_PROCESSES; i++) {
      const port = await findSteadyPort();
      const process = makeProcess(`api-${i}`, "src/main.ts", { PORT: String(port) });
      apis.push({ process, url: `http://127.0.0.1:${port}` });
    }
    for (let i = 1; i <= WORKER_PROCESSES; i++) addWorker({});
    await Promise.all([postgres.start(), redis.start()]);
    await migrateDatabase(postgres.url);
    await makeRoles(db, SERVICE_PASSWORD);
    return cluster;
  } catch (error) {
    await cluster.close();
    throw error;
  }
}

function serviceUrl(ownerUrl: string): string {
  return Object.assign(new URL(ownerUrl), { username: "pva_api", password: SERVICE_PASSWORD }).href;
}

let portsTried = 0;

/** A port that nobody listens on and that stays free while the process that it is for is dead. */
async function findSteadyPort(): Promise<number> {
  for (;;) {
    // Begins at another place in each process, so that runs beside each other do not meet.
    const port = FIRST_PORT + ((process.pid * 37 + portsTried++) % (LAST_PORT - FIRST_PORT));
    const probe = createServer();
    const free = await new Promise<boolean>((resolve) => {
      probe.once("error", () => resolve(false));
      probe.listen(port, () => probe.close(() => resolve(true)));
    });
    if (free) return port;
  }
}
