import { cpus, hostname } from "node:os";
import type pg from "pg";
import { readProcesses } from "../core/processes/db/processes.ts";
import { readWorkingSessions } from "../platform/db/working-sessions.ts";
import { mastersOf, type RedisClient } from "../platform/redis/connections.ts";
import { type Part, partsOf } from "../watch/find-limit.ts";

/** How busy each part was during a load. */
export interface Measured {
  parts: Part[];
  /** The share of this machine's cores that was used. Null when no process of the service runs on this machine. */
  machine: number | null;
}

/** Time between two readings from Postgres. Milliseconds. */
const LOOK_EVERY_MS = 200;

/** Begins to measure what the processes do not record about themselves. Reading the result ends the measurement. */
export async function openMeters(pool: pg.Pool, redis: RedisClient) {
  const startedAt = performance.now();
  const redisBefore = await readRedisCpu(redis);
  const machineBefore = readMachine();
  const working: number[] = [];
  const timer = setInterval(() => {
    readWorkingSessions(pool).then(
      (sessions) => sessions.isVisible && working.push(sessions.working),
      () => undefined,
    );
  }, LOOK_EVERY_MS);
  return {
    async read(): Promise<Measured> {
      clearInterval(timer);
      const seconds = (performance.now() - startedAt) / 1_000;
      const machineAfter = readMachine();
      const redisAfter = await readRedisCpu(redis);
      const processes = await readProcesses(pool);
      const [apis, workers] = partsOf(processes) as [Part, Part];
      const busyRedis = Math.max(
        ...redisAfter.map((after, index) => (after - (redisBefore[index] ?? after)) / seconds),
      );
      // Each worker has one batch in progress, so the busy sessions of Postgres show how many workers wait for it.
      const mean = working.reduce((sum, one) => sum + one, 0) / Math.max(working.length, 1);
      const busyPostgres = working.length === 0 ? null : Math.min(1, mean / Math.max(workers.processes, 1));
      const isHere = processes.some(({ host, isUp }) => host === hostname() && isUp);
      const idle = (machineAfter.idle - machineBefore.idle) / (machineAfter.all - machineBefore.all);
      return {
        parts: [
          apis,
          workers,
          { name: "Redis", busy: busyRedis, processes: redisAfter.length },
          { name: "Postgres", busy: busyPostgres, processes: 1 },
        ],
        machine: isHere ? 1 - idle : null,
      };
    },
  };
}

/** The CPU time of the thread that runs commands on each master. Seconds. */
async function readRedisCpu(redis: RedisClient): Promise<number[]> {
  return Promise.all(
    mastersOf(redis).map(async (master) => {
      const info = await master.info();
      const read = (name: string) =>
        Number(new RegExp(`^used_cpu_${name}_main_thread:(\\S+)`, "m").exec(info)?.[1] ?? 0);
      return read("user") + read("sys");
    }),
  );
}

/** The idle time and the total time of this machine's cores. Milliseconds. */
function readMachine(): { idle: number; all: number } {
  const times = cpus().map((core) => core.times);
  const all = times.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0);
  return { idle: times.reduce((sum, { idle }) => sum + idle, 0), all };
}
