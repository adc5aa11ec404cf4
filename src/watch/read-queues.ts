import type pg from "pg";
import type { Logger } from "pino";
import { findNewestPause } from "../acts/db/audit-entries.ts";
import { readProcesses, type ServiceProcess } from "../core/processes/db/processes.ts";
import {
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
import { measureQueues, type ShardBacklog } from "../platform/queues/measure-queues.ts";
import type { QueueView, QueueViews } from "../platform/queues/queue-views.ts";
import type { RedisClient } from "../platform/redis/connections.ts";
import { knownId } from "./facts.ts";
import { inTime } from "./in-time.ts";

/** Maximum wait for a server. Milliseconds. */
const WAIT_MAX_MS = 1_500;
/** Number of minutes to read, including the current one. */
const MINUTES = 5;

/** A queue, summed over its shards. Counts and ages are null if a shard's server does not answer. */
interface QueueSummary {
  name: string;
  waiting: number | null;
  active: number | null;
  failed: number | null;
  /** 0 if no job waits. */
  oldestWaitingMs: number | null;
  /** Whether any shard that answered is paused. */
  paused: boolean;
  /** Number of worker processes that serve the queue and were recently seen. */
  workers: number;
}

/** A queue as operators see it. */
export interface QueueState extends Omit<QueueSummary, "workers"> {
  shards: number;
  pausedShards: number;
  /** For a paused queue: its last pause or resumption on a page of this service, or null if there is none. */
  newestPause: QueuePause | null | "unknown";
  /** The processes that serve the queue and were recently seen. Null while Postgres does not answer. */
  workers: ServiceProcess[] | null;
  /** Number of jobs that ended in the last minute. Null while Redis does not answer. */
  jobsPerMinute: number | null;
  /** How long jobs waited and ran in the last five minutes. Null while Redis does not answer. */
  times: JobTimes | null;
}

interface QueuePause {
  isPaused: boolean;
  by: string;
  reason: string | null;
  since: Date;
}

export interface QueuesDeps {
  pool: pg.Pool;
  redis: RedisClient;
  deployment: DatabaseFence;
  config: Pick<Config, "queueShards" | "queues">;
  log: Logger;
}

/**
 * Reads the state of every queue. Data of a server that does not answer is empty, null or "unknown".
 * @throws AppError `unavailable` when Redis does not answer at all, or when the names of its keys are unknown.
 */
export async function readQueues(ctx: QueuesDeps): Promise<QueueState[]> {
  const { redis, deployment, config, log } = ctx;
  if (knownId(deployment) === null) throw new AppError("unavailable", UNKNOWN);
  const now = deployment.clock.steadyNow();
  const minutes = timesUntil(now, "minute", MINUTES);
  const [shards, processes, counts] = await Promise.all([
    inTime(log, WAIT_MAX_MS, () => measureQueues(redis, deployment.id, config), []),
    inTime(log, WAIT_MAX_MS, () => readProcesses(ctx.pool), null),
    inTime(log, WAIT_MAX_MS, () => readCounts(redis, deployment, "minute", minutes), null),
  ]);
  const backlogs = shards.flatMap(({ queues }) => queues ?? []);
  if (backlogs.length === 0) throw new AppError("unavailable", SILENT);
  const summaries = summarizeQueues(config.queues, shards, processes ?? []);
  const paused = summaries.flatMap((one) => (one.paused ? [one.name] : []));
  const pauses = await inTime(log, WAIT_MAX_MS, () => readPauses(ctx.pool, paused), null);
  return summaries.map((summary) => {
    const { name } = summary;
    const parts = backlogs.filter(({ queue }) => queue === name);
    return {
      ...summary,
      shards: parts.length,
      pausedShards: parts.filter((part) => part.paused).length,
      newestPause: pauses === null ? "unknown" : (pauses.get(name) ?? null),
      workers: processes?.filter(({ queues, isUp }) => isUp && queues.includes(name)) ?? null,
      jobsPerMinute: counts && inLastMinute(counts, now, (minute) => jobsIn(minute, name)),
      times: counts && jobTimesIn(counts, name),
    };
  });
}

/** Reads one queue after the other, because each read uses a connection. */
async function readPauses(pool: pg.Pool, queues: readonly string[]): Promise<Map<string, QueuePause>> {
  const pauses = new Map<string, QueuePause>();
  for (const queue of queues) {
    const newest = await findNewestPause(pool, queue);
    if (newest === null) continue;
    const { command, osUser: by, reason, at: since } = newest;
    pauses.set(queue, { isPaused: command === "queue pause", by, reason, since });
  }
  return pauses;
}

/** Sums the shards of each queue, and counts its workers. Without shards, as if no shard had answered. */
export function summarizeQueues(
  queues: readonly { name: string }[],
  shards: readonly ShardBacklog[],
  processes: readonly Pick<ServiceProcess, "queues" | "isUp">[],
): QueueSummary[] {
  const isWhole = shards.length > 0 && shards.every(({ queues }) => queues !== null);
  const backlogs = Map.groupBy(
    shards.flatMap(({ queues }) => queues ?? []),
    ({ queue }) => queue,
  );
  return queues.map(({ name }) => {
    const parts = backlogs.get(name) ?? [];
    const sum = (state: "waiting" | "active" | "failed") =>
      isWhole ? parts.reduce((total, part) => total + part[state], 0) : null;
    return {
      name,
      waiting: sum("waiting"),
      active: sum("active"),
      failed: sum("failed"),
      oldestWaitingMs: isWhole ? Math.max(0, ...parts.map((part) => part.oldestWaitingMs)) : null,
      paused: parts.some((part) => part.paused),
      workers: processes.filter(({ queues, isUp }) => isUp && queues.includes(name)).length,
    };
  });
}

const SILENT = "Redis does not answer, so the queues and their workers are not known.";
const UNKNOWN =
  "Postgres has not been reached since this process started, so it does not know which queues are its own.";

/** A failed job, without the fields that the dashboard may not show. */
export interface FailedJob {
  id: string;
  reason: string;
  failedAt: Date;
  /** The operator page of the entity that the job concerns, as segments after `/ops`. Null if there is none. */
  page: readonly [collection: string, id: string] | null;
}

/** The newest failed jobs of a queue, at most `max`. Null when a Redis server does not answer. */
export async function readFailedJobs(
  { queueViews, log }: { queueViews: Pick<QueueViews, "open">; log: Logger },
  name: string,
  max: number,
): Promise<FailedJob[] | null> {
  try {
    const views = (await queueViews.open()).filter(({ queue }) => queue.name === name);
    const found = await Promise.all(views.map((view) => readShard(view, max)));
    return found
      .flat()
      .toSorted((a, b) => b.failedAt.getTime() - a.failedAt.getTime())
      .slice(0, max);
  } catch (error) {
    log.debug({ err: error }, "cannot read failed jobs");
    return null;
  }
}

async function readShard({ queue, settings: { about } }: QueueView, max: number): Promise<FailedJob[]> {
  const jobs = await queue.getJobs("failed", 0, max - 1);
  return jobs.flatMap((job): FailedJob[] => {
    // A job is undefined if it was removed after the list was read.
    if (job === undefined || job.id === undefined) return [];
    const id: unknown = Object(job.data)[about?.field ?? ""];
    return [
      {
        id: job.id,
        reason: job.failedReason ?? "",
        failedAt: new Date(job.finishedOn ?? job.timestamp),
        page: about !== undefined && typeof id === "string" ? [about.collection, id] : null,
      },
    ];
  });
}
