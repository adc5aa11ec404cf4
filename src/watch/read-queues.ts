import pTimeout from "p-timeout";
import type { Logger } from "pino";
import { type JobTimes, readJobTimes } from "../core/processes/job-counts.ts";
import { type ReportedProcess, readProcesses } from "../core/processes/read-processes.ts";
import type { Config } from "../platform/config.ts";
import type { Deployment } from "../platform/db/deployment.ts";
import { measureQueues } from "../platform/queues/measure-queues.ts";
import type { RedisClient } from "../platform/redis/connections.ts";
import { reportPrefix } from "../platform/redis/findings.ts";
import { type QueueSummary, summarizeQueues } from "./summarize-queues.ts";

/** Longest wait for Redis. Milliseconds. */
const WAIT_MAX_MS = 1_500;

/** A queue as operators see it. */
export interface QueueState extends Omit<QueueSummary, "workers"> {
  shards: number;
  pausedShards: number;
  /** The processes that serve it and have reported lately. */
  workers: ReportedProcess[];
  /** Jobs that these workers ended in the last minute. */
  jobsPerMinute: number;
  /** Of the last five minutes; null while Redis does not answer. */
  times: JobTimes | null;
}

export interface QueuesDeps {
  redis: RedisClient;
  deployment: Deployment;
  config: Pick<Config, "queueShards">;
  log: Logger;
}

/** Reads the state of every queue. What Redis would have told is empty or null while it does not answer. */
export async function readQueues({ redis, deployment, config, log }: QueuesDeps): Promise<QueueState[]> {
  const inTime = <T>(read: Promise<T>, fallback: T) =>
    pTimeout(read, { milliseconds: WAIT_MAX_MS }).catch((error): T => {
      log.debug({ err: error }, "cannot read a part of the queues");
      return fallback;
    });
  const nowMs = deployment.clock.steadyNow().getTime();
  const [shards, processes, times] = await Promise.all([
    inTime(measureQueues(redis, deployment.id, config.queueShards), []),
    inTime(readProcesses(redis, deployment), []),
    inTime(readJobTimes(redis, reportPrefix(deployment), nowMs), null),
  ]);
  const backlogs = shards.flatMap(({ queues }) => queues ?? []);
  return summarizeQueues(shards, processes).map((summary) => {
    const { name } = summary;
    const parts = backlogs.filter(({ queue }) => queue === name);
    const workers = processes.filter(({ queues, state }) => state === "up" && queues.includes(name));
    return {
      ...summary,
      shards: parts.length,
      pausedShards: parts.filter(({ paused }) => paused).length,
      workers,
      jobsPerMinute: workers.reduce((sum, { jobs }) => sum + (jobs?.[name] ?? 0), 0),
      times: times?.[name] ?? null,
    };
  });
}
