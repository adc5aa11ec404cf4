import type { WorkerContext } from "../src/context.ts";
import { sweepQueue } from "../src/queues/catalog.ts";
import { Schedule } from "../src/queues/schedule.ts";
import { type RunningWorker, startWorker } from "../src/queues/worker.ts";
import { sweep } from "../src/services/sweep.ts";

/**
 * Trigger: a job every SWEEP_INTERVAL_MS, from one schedule that every worker process keeps.
 * Effect: catches Postgres and Redis up with the time: ended holds, missing and orphaned leases, expired vouchers, late seals;
 * verifies some chains. Reads never depend on it.
 * Second delivery, or two passes at once: each takes what the other has not locked.
 * After a crash: every step is a transaction of its own; the next pass goes on from what is in Postgres.
 */
export function startSweepWorker(ctx: WorkerContext): RunningWorker {
  const { redisUrl, sweepIntervalMs } = ctx.config;
  const schedule = new Schedule(sweepQueue, redisUrl, sweepIntervalMs, ctx.log);
  const worker = startWorker(sweepQueue, { redisUrl, concurrency: 1, log: ctx.log }, async () => {
    const report = await sweep(ctx);
    ctx.log.info(report, "swept");
    ctx.metrics?.sweeps.countPass(report);
    return report;
  });
  return {
    async close() {
      schedule.close();
      await worker.close();
    },
  };
}
