import { type WorkerContext, workerOptions } from "../src/context.ts";
import type { SealReply } from "../src/contract/jobs.ts";
import { sealQueue } from "../src/queues/catalog.ts";
import { type RunningWorker, startWorker } from "../src/queues/worker.ts";
import { sealVoucher } from "../src/services/redeem/seal-events.ts";

/** Each seal uses one connection, and the pool has four for seals. */
const CONCURRENCY = 4;

/**
 * Trigger: one job per voucher with a Pending event, added by a claim, a purchase, a void or the sweeper.
 * Effect: all Pending events of the voucher are sealed, in order.
 * Second delivery, or after a redemption that sealed the events: there is nothing to seal.
 * After a crash: the events are still Pending. The sweeper adds another job, or the next redemption of the voucher seals them.
 */
export function startSealWorker(ctx: WorkerContext): RunningWorker {
  return startWorker(
    sealQueue,
    workerOptions(ctx, CONCURRENCY),
    (_jobId, job, traceparent): Promise<SealReply> =>
      ctx.traces.processJob(sealQueue.name, traceparent, async () => ({
        sealed: await sealVoucher(ctx, job.voucherId),
      })),
  );
}
