import { type WorkerDeps, workerOptions } from "../src/core/processes/worker-options.ts";
import { redeemQueue } from "../src/core/redeem/job.ts";
import { openRedeemCommitter, runRedeemJob } from "../src/core/redeem/redeem-committer.ts";
import type { DepsOf } from "../src/platform/http/endpoint.ts";
import type { Lifetime } from "../src/platform/lifetime.ts";
import { startWorker } from "../src/platform/queues/worker.ts";

/** What the worker gets from its process. */
type Deps = WorkerDeps &
  Pick<Lifetime, "use"> &
  DepsOf<typeof openRedeemCommitter> &
  Omit<DepsOf<typeof runRedeemJob>, "redeemCommitter">;

/**
 * - Trigger: one job per redeem attempt. The API adds it and waits for the reply.
 * - Effect: at most one redemption with its sealed event, in a transaction shared with the other jobs that are ready.
 * - Second delivery: if the first delivery has redeemed the voucher, the worker sends the same reply. Otherwise it
 *   decides again.
 * - After a crash: before the commit, nothing has changed. After the commit, the redemption exists, and the API or
 *   the partner's retry finds it by its externalRef.
 */
export function prepare(service: Deps) {
  const ctx = { ...service, redeemCommitter: service.use(openRedeemCommitter(service)) };
  const start = () =>
    startWorker(redeemQueue, workerOptions(ctx, ctx.config.workerConcurrency), (jobId, job, traceparent) =>
      ctx.traces.processJob(redeemQueue.name, traceparent, () => runRedeemJob(ctx, jobId, job)),
    );
  return { ctx, start };
}
