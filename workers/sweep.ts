import { sweepQueue } from "../src/core/queues/catalog.ts";
import { FinishedJobs } from "../src/core/queues/finished-jobs.ts";
import { openSealRequests, openWebhookRequests } from "../src/core/queues/job-requests.ts";
import { isIdle, recordSweep } from "../src/core/sweep/sweep.ts";
import { sweep } from "../src/open/open-sweep.ts";
import { type WorkerService, workerOptions } from "../src/open/open-worker-service.ts";
import { Schedule } from "../src/platform/queues/schedule.ts";
import { type RunningWorker, startWorker } from "../src/platform/queues/worker.ts";

/**
 * Trigger: a job every SWEEP_INTERVAL_MS, added by one of the worker processes.
 * Effect: records expired reservations, vouchers and contracts; restores and removes leases; requests overdue seals and webhook deliveries;
 * removes old deliveries, reservations and finished jobs; counts redemptions and claims; verifies the next chains. Responses of the API are correct even before the sweeper has run.
 * Second delivery: if a job is delivered twice or two passes overlap, each pass skips the rows that the other has locked.
 * After a crash: each step is its own transaction. The next pass continues from the state in Postgres.
 */
export function prepare(service: WorkerService) {
  const [shards] = service.config.queueShards;
  const ctx = {
    ...service,
    finishedJobs: service.closeLater(new FinishedJobs(service)),
    sealRequests: service.closeLater(openSealRequests({ ...service, shards })),
    webhookRequests: service.closeLater(openWebhookRequests({ ...service, shards })),
  };
  return { ctx, start: () => start(ctx) };
}

function start(ctx: ReturnType<typeof prepare>["ctx"]): RunningWorker {
  const { redisUrl, queueShards, sweepIntervalMs } = ctx.config;
  const servers = { redisUrl, shards: queueShards[0] };
  const schedule = new Schedule(sweepQueue, ctx.deployment, servers, sweepIntervalMs, ctx.log);
  const worker = startWorker(sweepQueue, workerOptions(ctx, 1), async () => {
    const report = await sweep(ctx);
    ctx.log[isIdle(report) ? "debug" : "info"](report, "sweep finished");
    if (ctx.metrics !== null) recordSweep(ctx.metrics, report);
    return report;
  });
  return {
    async close() {
      schedule.close();
      await worker.close();
    },
  };
}
