import type { OfWings } from "../core/metrics/metrics.ts";
import { type WorkerDeps, workerOptions } from "../core/processes/worker-options.ts";
import type { Config } from "../platform/config.ts";
import { closeAll } from "../platform/lifetime.ts";
import { Schedule } from "../platform/queues/schedule.ts";
import { type RunningWorker, startWorker } from "../platform/queues/worker.ts";
import { TLOG_METRICS, tlogVariables } from "./declared.ts";
import { tlogQueue } from "./job.ts";
import { readTlogSettings } from "./log-settings.ts";
import { Sequencer } from "./run-log.ts";

type Deps = WorkerDeps & {
  config: Pick<Config, "ofWings">;
  metrics: OfWings<"worker"> | null;
};

/**
 * - Trigger: a job every LOG_INTERVAL_MS, added by one of the worker processes that have the log's key. Without the
 *   key, this process takes no jobs of this queue.
 * - Effect: sealed events get their positions in the log, and the next checkpoint is signed, anchored, cosigned and
 *   served.
 * - Second delivery: if another process is assigning positions, this pass assigns none. Signing a tree again gives the
 *   same bytes.
 * - After a crash: positions are assigned in one transaction. The next pass assigns those that are missing and signs
 *   the tree.
 * @throws TlogSettingsError when the log's key or its policy cannot be used.
 */
export async function prepare(ctx: Deps) {
  const { keyFile, ...settings } = tlogVariables.of(ctx.config);
  if (keyFile === null) return null;
  const tlogSettings = await readTlogSettings({ ...settings, keyFile });
  return { ctx, start: () => start(ctx, new Sequencer({ ...ctx, tlogSettings })) };
}

const REFUSALS = TLOG_METRICS.table.logRefused.zero;

function start(ctx: Deps, sequencer: Sequencer): RunningWorker {
  const metrics = ctx.metrics && TLOG_METRICS.of(ctx.metrics);
  const { config } = ctx;
  const servers = { redisUrl: config.redisUrl, shards: config.queueShards[0] };
  const schedule = new Schedule(tlogQueue, ctx.deployment, servers, tlogVariables.of(config).intervalMs, ctx.log);
  let obstacle: (typeof REFUSALS)[number] | null = null;
  const worker = startWorker(tlogQueue, workerOptions(ctx, 1), async () => {
    let outcome: typeof obstacle = "failed";
    try {
      const report = await sequencer.run();
      ctx.log.debug(report, "log pass finished");
      outcome = report.obstacle;
      metrics?.logClaims.with().set(report.claims);
      metrics?.logSetAside.with().set(report.setAside);
      metrics?.logLeaves.with().inc(report.placed);
      return report;
    } finally {
      obstacle = outcome;
      for (const reason of REFUSALS) metrics?.logRefused.with(reason).set(reason === obstacle ? 1 : 0);
    }
  });
  return { isReady: () => obstacle === null, close: () => closeAll([schedule, worker]) };
}
