import { openSealCommitter, runSealJob } from "../src/core/chain/seal-committer.ts";
import { sealQueue } from "../src/core/chain/seal-job.ts";
import { type WorkerDeps, workerOptions } from "../src/core/processes/worker-options.ts";
import type { DepsOf } from "../src/platform/http/endpoint.ts";
import type { Lifetime } from "../src/platform/lifetime.ts";
import { startWorker } from "../src/platform/queues/worker.ts";

/** What the worker gets from its process. */
type Deps = WorkerDeps & Pick<Lifetime, "use"> & DepsOf<typeof openSealCommitter>;

/**
 * - Trigger: one job per voucher with a Pending event, added by a claim, a purchase or the sweeper.
 * - Effect: all Pending events of the voucher are sealed, in order, in a transaction shared with the other jobs that
 *   are ready.
 * - Second delivery: nothing is left to seal. The same is true after a redemption has sealed the events.
 * - After a crash: the events are still Pending. The sweeper adds another job, or the next redemption of the voucher
 *   seals them.
 */
export function prepare(service: Deps) {
  const ctx = { ...service, sealCommitter: service.use(openSealCommitter(service)) };
  const start = () =>
    startWorker(sealQueue, workerOptions(ctx, ctx.config.workerConcurrency), (_jobId, job, traceparent) =>
      ctx.traces.processJob(sealQueue.name, traceparent, () => runSealJob(ctx, job)),
    );
  return { ctx, start };
}
