import type { WorkerContext } from "../src/context.ts";
import { type SealReply, sealQueue } from "../src/queues/catalog.ts";
import { type RunningWorker, startWorker } from "../src/queues/worker.ts";
import { sealVoucher } from "../src/services/seal-events.ts";

/** Seals run one transaction each; more would only wait for connections. */
const CONCURRENCY = 4;

/**
 * Trigger: one job per voucher whose chain got a Pending event outside a redeem.
 * Effect: all Pending events of the voucher are sealed, in order.
 * Second delivery, or a redeem that came first: nothing is left to seal.
 * After a crash: the events are still Pending; the sweeper asks again, or the next move of the voucher seals them.
 */
export function startSealWorker(ctx: WorkerContext): RunningWorker {
  return startWorker(
    sealQueue,
    { redisUrl: ctx.config.redisUrl, concurrency: CONCURRENCY, log: ctx.log },
    (_jobId, job, traceparent): Promise<SealReply> =>
      ctx.traces.job(sealQueue.name, traceparent, async () => ({ sealed: await sealVoucher(ctx, job.voucherId) })),
  );
}
