import { hostname } from "node:os";
import { type Job, UnrecoverableError, Worker } from "bullmq";
import type { Logger } from "pino";
import { PREFIX, type QueueDefinition } from "./catalog.ts";
import { patient } from "./connections.ts";
import { logErrors } from "./log-errors.ts";

/** A running worker. `close` takes no more jobs and waits for those under way. */
export interface RunningWorker {
  close(): Promise<void>;
}

/**
 * Starts working on a queue. `process` gets each job's id and validated data; what it returns is the job's reply and what it
 * throws is the job's failure. A job may be delivered twice, even while it still runs elsewhere.
 */
export function startWorker<Data, Reply>(
  definition: QueueDefinition<Data>,
  options: { redisUrl: string; concurrency: number; log: Logger },
  process: (jobId: string, data: Data) => Promise<Reply>,
): RunningWorker {
  const log = options.log.child({ queue: definition.name });
  const worker = new Worker(
    definition.name,
    async (job: Job) => {
      const parsed = definition.data.safeParse(job.data);
      if (!parsed.success || job.id === undefined)
        throw new UnrecoverableError("the job's data is not what this queue carries");
      return process(job.id, parsed.data);
    },
    {
      prefix: PREFIX,
      connection: patient(options.redisUrl, `${definition.name}-worker`),
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
  return { close: () => worker.close() };
}
