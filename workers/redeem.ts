import type { WorkerContext } from "../src/context.ts";
import { redeemQueue } from "../src/queues/catalog.ts";
import { type RunningWorker, startWorker } from "../src/queues/worker.ts";
import { runRedeemJob } from "../src/services/burn-vouchers.ts";

/**
 * Trigger: one job per redeem attempt, added by the API, which waits for the reply.
 * Effect: at most one burn, sealed, in one transaction shared with the jobs that are ready at the same time.
 * Second delivery: the attempt finds its own burn by its id and replies what it replied first; otherwise it decides anew.
 * After a crash: before the commit nothing has happened; after it the burn stands, and the API or the partner's retry finds it
 * by its externalRef. A consumed hold's lease ends by itself.
 */
export function startRedeemWorker(ctx: WorkerContext): RunningWorker {
  const { redisUrl, workerConcurrency } = ctx.config;
  return startWorker(
    redeemQueue,
    { redisUrl, concurrency: workerConcurrency, log: ctx.log },
    (jobId, job, traceparent) => ctx.traces.job(redeemQueue.name, traceparent, () => runRedeemJob(ctx, jobId, job)),
  );
}
