import pTimeout from "p-timeout";
import type pg from "pg";
import type { Logger } from "pino";
import { readProcesses, type ServiceProcess } from "../core/processes/db/processes.ts";
import {
  type Counts,
  inLastMinute,
  type JobTimes,
  jobsIn,
  jobTimesIn,
  readCounts,
  timesUntil,
} from "../core/processes/minute-counts.ts";
import { AppError } from "../platform/api/errors.ts";
import type { Config } from "../platform/config.ts";
import type { DatabaseFence } from "../platform/db/database-fence.ts";
import { measureQueues } from "../platform/queues/measure-queues.ts";
import type { RedisClient } from "../platform/redis/connections.ts";
import { knownId, type QueuePause, readPauses } from "./facts.ts";
import { type QueueSummary, summarizeQueues } from "./summarize-queues.ts";

/** Longest wait for a server. Milliseconds. */
const WAIT_MAX_MS = 1_500;
/** How many of the last minutes are read, including the present one. */
const MINUTES = 5;

/** A queue as operators see it. */
export interface QueueState extends Omit<QueueSummary, "workers"> {
  shards: number;
  pausedShards: number;
  /** For a paused queue: its last pause or resumption on a page of this service, or null if there is none. */
  newestPause: QueuePause | null | "unknown";
  /** The processes that serve the queue and were seen lately; null while Postgres does not answer. */
  workers: ServiceProcess[] | null;
  /** Jobs that ended in the last minute; null while Redis does not answer. */
  jobsPerMinute: number | null;
  /** The times of the last five minutes; null while Redis does not answer. */
  times: JobTimes | null;
}

export interface QueuesDeps {
  pool: pg.Pool;
  redis: RedisClient;
  deployment: DatabaseFence;
  config: Pick<Config, "queueShards" | "queues">;
  log: Logger;
}

/**
 * Reads the state of every queue. What Postgres or a Redis server does not answer is empty, null or unknown.
 * @throws AppError `unavailable` when Redis does not answer at all, or if its keys are not known.
 */
export async function readQueues(ctx: QueuesDeps): Promise<QueueState[]> {
  const { redis, deployment, config, log } = ctx;
  if (knownId(deployment) === null) throw new AppError("unavailable", UNKNOWN);
  const inTime = <T>(read: Promise<T>, fallback: T) =>
    pTimeout(read, { milliseconds: WAIT_MAX_MS }).catch((error): T => {
      log.debug({ err: error }, "cannot read a part of the queues");
      return fallback;
    });
  const now = deployment.clock.steadyNow();
  const minutes = timesUntil(now, "minute", MINUTES);
  const [shards, processes, counts] = await Promise.all([
    inTime(measureQueues(redis, deployment.id, config), []),
    inTime<ServiceProcess[] | null>(readProcesses(ctx.pool), null),
    inTime<Counts[] | null>(readCounts(redis, deployment, "minute", minutes), null),
  ]);
  const backlogs = shards.flatMap(({ queues }) => queues ?? []);
  if (backlogs.length === 0) throw new AppError("unavailable", SILENT);
  const summaries = summarizeQueues(config.queues, shards, processes ?? []);
  const paused = summaries.flatMap((one) => (one.paused ? [one.name] : []));
  const pauses = await inTime<QueuePause[] | null>(readPauses(ctx.pool, paused), null);
  return summaries.map((summary) => {
    const { name } = summary;
    const parts = backlogs.filter(({ queue }) => queue === name);
    return {
      ...summary,
      shards: parts.length,
      pausedShards: parts.filter((part) => part.paused).length,
      newestPause: pauses === null ? "unknown" : (pauses.find(({ queue }) => queue === name) ?? null),
      workers: processes?.filter(({ queues, isUp }) => isUp && queues.includes(name)) ?? null,
      jobsPerMinute: counts && inLastMinute(counts, now, (minute) => jobsIn(minute, name)),
      times: counts && jobTimesIn(counts, name),
    };
  });
}

const SILENT = "Redis does not answer, so the queues and their workers are not known.";
const UNKNOWN =
  "Postgres has not been reached since this process started, so it does not know which queues are its own.";
