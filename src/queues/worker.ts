import { hostname } from "node:os";
import { type Job, UnrecoverableError, Worker } from "bullmq";
import type { Logger } from "pino";
import { jobEnvelope, PREFIX, type QueueDefinition } from "./catalog.ts";
import { openPatient } from "./connections.ts";
import { logErrors } from "./log-errors.ts";
import { type JobEnd, ReplyOutbox } from "./replies.ts";

/** A running worker. `close` takes no more jobs and waits for those under way. */
export interface RunningWorker {
  close(): Promise<void>;
}

/**
 * Fetchers of a process, at most. A fetcher takes jobs one round trip after another and starts none before it has as many as it may
 * run or finds none left, so a single one lets sixty jobs wait for sixty round trips.
 */
const FETCHERS_MAX = 8;

/**
 * Starts working on a queue, with at most `concurrency` jobs under way. `process` gets each job's id, its validated data and
 * the trace that it is part of; what it returns is the job's reply and what it throws is the job's failure. Whoever waits is told before the queue is, so that a reply
 * does not wait for the queue's bookkeeping. A job may be delivered twice, even while it still runs elsewhere.
 */
export function startWorker<Data, Reply>(
  definition: QueueDefinition<Data>,
  options: { redisUrl: string; concurrency: number; log: Logger },
  process: (jobId: string, data: Data, traceparent: string | undefined) => Promise<Reply>,
): RunningWorker {
  const log = options.log.child({ queue: definition.name });
  const redis = openPatient(options.redisUrl, `${definition.name}-worker`, options.log);
  const outbox = new ReplyOutbox(redis, log);
  const work = async (job: Job): Promise<Reply> => {
    const jobId = job.id;
    const parsed = definition.data.safeParse(job.data);
    if (!parsed.success || jobId === undefined)
      throw new UnrecoverableError("the job's data is not what this queue carries");
    const { replyTo, traceparent } = jobEnvelope.parse(job.data);
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
      const reply = await process(jobId, parsed.data, traceparent);
      await tell({ reply });
      return reply;
    } catch (error) {
      await tell({ failure: (error as Error).message });
      throw error;
    }
  };
  const fetchers = shareOut(options.concurrency, FETCHERS_MAX).map((concurrency) => {
    const worker = new Worker(definition.name, work, {
      prefix: PREFIX,
      connection: redis,
      name: hostname(),
      concurrency,
      // Far above the longest job, so that a pause of the process does not look like its death; a dead worker's jobs are
      // taken over after 20 s at most.
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

/** `total` in whole shares that differ by one at most, `shares` of them or as many as there are to share. */
function shareOut(total: number, shares: number): number[] {
  const count = Math.min(total, shares);
  return Array.from({ length: count }, (_, index) => Math.floor((total + index) / count));
}
