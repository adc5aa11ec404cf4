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
 * Starts working on a queue. `process` gets each job's id, its validated data and the trace that it is part of; what it returns is the job's reply and what it
 * throws is the job's failure. Whoever waits is told before the queue is, so that a reply takes one trip and not the queue's
 * bookkeeping. A job may be delivered twice, even while it still runs elsewhere.
 */
export function startWorker<Data, Reply>(
  definition: QueueDefinition<Data>,
  options: { redisUrl: string; concurrency: number; log: Logger },
  process: (jobId: string, data: Data, traceparent: string | undefined) => Promise<Reply>,
): RunningWorker {
  const log = options.log.child({ queue: definition.name });
  const redis = openPatient(options.redisUrl, `${definition.name}-worker`, options.log);
  const outbox = new ReplyOutbox(redis, log);
  const worker = new Worker(
    definition.name,
    async (job: Job) => {
      const jobId = job.id;
      const parsed = definition.data.safeParse(job.data);
      if (!parsed.success || jobId === undefined)
        throw new UnrecoverableError("the job's data is not what this queue carries");
      const beganAt = Date.now();
      const { replyTo, traceparent } = jobEnvelope.parse(job.data);
      const tell = (outcome: JobEnd["outcome"]) => {
        if (replyTo === undefined) return;
        outbox.send(replyTo, {
          jobId,
          outcome,
          queuedMs: beganAt - job.timestamp,
          workedMs: Date.now() - beganAt,
        });
      };
      try {
        const reply = await process(jobId, parsed.data, traceparent);
        tell({ reply });
        return reply;
      } catch (error) {
        tell({ failure: (error as Error).message });
        throw error;
      }
    },
    {
      prefix: PREFIX,
      connection: redis,
      name: hostname(),
      concurrency: options.concurrency,
      // Far above the longest job, so that a pause of the process does not look like its death; a dead worker's jobs are
      // taken over after 20 s at most.
      lockDuration: 15_000,
      stalledInterval: 5_000,
      maxStalledCount: 1,
      drainDelay: 5,
      runRetryDelay: 1_000,
    },
  );
  logErrors(worker, log, "worker");
  worker.on("failed", (job, error) => log.error({ err: error, jobId: job?.id }, "a job failed"));
  worker.on("stalled", (jobId) => log.warn({ jobId }, "a job's worker died; the job runs again"));
  return {
    async close() {
      await worker.close();
      redis.disconnect();
    },
  };
}
