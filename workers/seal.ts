import { type WorkerContext, workerOptions } from "../src/context.ts";
import { sealQueue } from "../src/queues/catalog.ts";
import { type RunningWorker, startWorker } from "../src/queues/worker.ts";
import { runSealJob } from "../src/services/redeem/seal-committer.ts";

/**
 * Trigger: one job per voucher with a Pending event, added by a claim, a purchase, a void or the sweeper.
 * Effect: all Pending events of the voucher are sealed, in order, in a transaction shared with the other jobs that are ready.
 * Second delivery, or after a redemption that sealed the events: there is nothing to seal.
 * After a crash: the events are still Pending. The sweeper adds another job, or the next redemption of the voucher seals them.
 */
export function startSealWorker(ctx: WorkerContext): RunningWorker {
  return startWorker(sealQueue, workerOptions(ctx, ctx.config.workerConcurrency), (_jobId, job, traceparent) =>
    ctx.traces.processJob(sealQueue.name, traceparent, () => runSealJob(ctx, job)),
  );
}
