import { hostname } from "node:os";
import { type Job, UnrecoverableError, Worker } from "bullmq";
import type { Logger } from "pino";
import { jobEnvelope } from "../contract/jobs.ts";
import type { DeploymentIdentity } from "../domain/deployment.ts";
import { type QueueDefinition, queuePrefix } from "./catalog.ts";
import { openPatient } from "./connections.ts";
import { logErrors } from "./log-errors.ts";
import { type JobEnd, ReplyOutbox } from "./replies.ts";

/** A running worker. `close` accepts no more jobs and waits for those that are running. */
export interface RunningWorker {
  close(): Promise<void>;
}

export interface WorkerOptions {
  redisUrl: string;
  /** The caller has waited until it is ready. */
  deployment: DeploymentIdentity;
  /** Maximum number of running jobs. */
  concurrency: number;
  log: Logger;
  /** Called for each job from another deployment or database. */
  onForeignJob: () => void;
}

/** Most fetchers of a process. A fetcher takes one job per round trip: alone it would delay sixty jobs by sixty trips. */
const FETCHERS_MAX = 8;

/**
 * Starts working on a queue, with at most `concurrency` running jobs. `process` receives each job's id, its validated data and its trace.
 * It returns the job's reply; an exception fails the job. The caller gets the reply before the queue records it, so that
 * the queue's bookkeeping does not delay it. A job may be delivered twice, even while it still runs elsewhere.
 */
export function startWorker<Data, Reply extends object>(
  definition: QueueDefinition<Data, Reply>,
  options: WorkerOptions,
  process: (jobId: string, data: Data, traceparent: string | undefined) => Promise<Reply>,
): RunningWorker {
  const { deployment } = options;
  const log = options.log.child({ queue: definition.name });
  const redis = openPatient(options.redisUrl, `${definition.name}-worker`, options.log);
  const outbox = new ReplyOutbox(redis, log);
  const work = async (job: Job): Promise<Reply> => {
    const jobId = job.id;
    const parsed = definition.data.safeParse(job.data);
    const envelope = jobEnvelope.safeParse(job.data);
    if (!parsed.success || !envelope.success || jobId === undefined)
      throw new UnrecoverableError("the job's data is not what this queue carries");
    const { origin, replyTo, traceparent } = envelope.data;
    const beganAt = Date.now();
    const tell = async (outcome: JobEnd["outcome"]) => {
      if (replyTo === undefined) return;
      await outbox.send(replyTo, {
        jobId,
        outcome,
        queuedMs: beganAt - job.timestamp,
        workedMs: Date.now() - beganAt,
      });
    };
    try {
      if (origin !== deployment.origin) {
        options.onForeignJob();
        throw new UnrecoverableError("the job is from another deployment or database");
      }
      const reply = { ...(await process(jobId, parsed.data, traceparent)), origin };
      await tell({ reply });
      return reply;
    } catch (error) {
      await tell({ failure: (error as Error).message });
      throw error;
    }
  };
  const fetchers = splitEvenly(options.concurrency, FETCHERS_MAX).map((concurrency) => {
    const worker = new Worker(definition.name, work, {
      prefix: queuePrefix(deployment.id),
      connection: redis,
      name: hostname(),
      concurrency,
      // Far above the longest job, so that a pause of the process does not look like its death. Another worker takes over a dead
      // worker's jobs within 20 s.
      lockDuration: 15_000,
      stalledInterval: 5_000,
      maxStalledCount: 1,
      drainDelay: 5,
      runRetryDelay: 1_000,
    });
    logErrors(worker, log, "worker");
    worker.on("failed", (job, error) => log.error({ err: error, jobId: job?.id }, "a job failed"));
    worker.on("stalled", (jobId) => log.warn({ jobId }, "a job's worker died; the job runs again"));
    return worker;
  });
  return {
    async close() {
      await Promise.all(fetchers.map((worker) => worker.close()));
      redis.disconnect();
    },
  };
}

/** Splits `total` into at most `shares` whole parts that differ by at most one. */
function splitEvenly(total: number, shares: number): number[] {
  const count = Math.min(total, shares);
  return Array.from({ length: count }, (_, index) => Math.floor((total + index) / count));
}
