import { openSealRequests } from "../src/core/chain/seal-job.ts";
import type { WorkerMetrics } from "../src/core/metrics/metrics.ts";
import { workerOptions } from "../src/core/processes/worker-options.ts";
import { type SweepReport, sweepQueue } from "../src/core/sweep/report.ts";
import { isIdle } from "../src/core/sweep/sweep.ts";
import { nameSweepTasks, openSweepTasks, sweep } from "../src/open/open-sweep.ts";
import type { DepsOf } from "../src/platform/http/endpoint.ts";
import { closeAll } from "../src/platform/lifetime.ts";
import { FinishedJobs } from "../src/platform/queues/finished-jobs.ts";
import { Schedule } from "../src/platform/queues/schedule.ts";
import { type RunningWorker, startWorker } from "../src/platform/queues/worker.ts";

/** What the worker gets from its process. */
type Deps = Omit<DepsOf<typeof openSweepTasks>, "queueLinks">;

/**
 * - Trigger: a job every SWEEP_INTERVAL_MS, added by one of the worker processes.
 * - Effect: records expired reservations, vouchers and contracts; requests overdue seals and webhook deliveries;
 *   removes old deliveries, reservations and finished jobs; counts redemptions and claims; verifies the next chains.
 *   Responses of the API are correct even before the sweeper has run.
 * - Second delivery: if a job is delivered twice or two passes overlap, each pass skips the rows that the other has
 *   locked.
 * - After a crash: each step is its own transaction. The next pass continues from the state in Postgres.
 */
export function prepare(service: Deps) {
  const queueLinks = { ...service, shards: service.config.queueShards[0] };
  const ctx = {
    ...service,
    finishedJobs: service.use(new FinishedJobs(service)),
    sealRequests: service.use(openSealRequests(queueLinks)),
    sweepTasks: openSweepTasks({ ...service, queueLinks }),
  };
  reportZeros(ctx);
  return { ctx, start: () => start(ctx) };
}

/** Reports each task as 0 from the start. Without this, `rate` would not see the first increase, from nothing to 1. */
function reportZeros(ctx: DepsOf<typeof sweep> & { metrics: WorkerMetrics | null }): void {
  for (const task of Object.keys(ctx.sweepTasks)) ctx.metrics?.sweepItems.with(task).inc(0);
  for (const task of nameSweepTasks(ctx)) ctx.metrics?.sweepFailures.with(task).inc(0);
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
  return { close: () => closeAll([schedule, worker]) };
}

/** Records one pass of the sweeper. */
function recordSweep(metrics: WorkerMetrics, report: SweepReport): void {
  metrics.sweepDuration.with().observe(report.durationMs / 1_000);
  for (const [task, items] of Object.entries(report.items)) metrics.sweepItems.with(task).inc(items);
  for (const task of Object.keys(report.failures)) metrics.sweepFailures.with(task).inc();
  metrics.chainsChecked.with().inc(report.chainsChecked);
}
