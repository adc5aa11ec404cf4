import { type Job, Worker } from "bullmq";
import { readConfig } from "../../../src/config.ts";
import { AppError } from "../../../src/contract/errors.ts";
import { configureProcess, drainOnSignal } from "../../../src/process.ts";
import { openWorkerContext } from "../../support/service.ts";
import { NAIVE_PREFIX, NAIVE_QUEUE, type NaiveJob, type NaiveReply } from "./naive-queue.ts";
import { openTransactionPool, redeemInOneTransaction } from "./one-transaction.ts";

// Baseline (b), the worker: one transaction per job.

/** Concurrent jobs and connections: eight for each of two cores. */
const CONCURRENCY = 16;

const config = configureProcess(readConfig);
const ctx = openWorkerContext(config);
const own = { ...ctx, pool: openTransactionPool(config, CONCURRENCY, ctx.log) };
const worker = new Worker(
  NAIVE_QUEUE,
  async (job: Job<NaiveJob>): Promise<NaiveReply> => {
    const { organizationId, keyId, ...input } = job.data;
    try {
      return { result: await redeemInOneTransaction(own, { organizationId, keyId, sandbox: false }, input) };
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      const { code, message, retryAfterSeconds } = error;
      return { refused: code, message, retryAfterSeconds };
    }
  },
  {
    prefix: NAIVE_PREFIX,
    connection: { url: config.redisUrl, maxRetriesPerRequest: null },
    concurrency: CONCURRENCY,
  },
);
worker.on("error", (error) => ctx.log.warn({ err: error }, "worker"));
drainOnSignal(ctx.log, async () => {
  await worker.close();
  await own.pool.end();
  await ctx.close();
});
