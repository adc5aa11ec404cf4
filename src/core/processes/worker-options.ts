import type pg from "pg";
import type { Logger } from "pino";
import type { Config } from "../../platform/config.ts";
import type { DatabaseFence } from "../../platform/db/database-fence.ts";
import type { WorkerOptions } from "../../platform/queues/worker.ts";
import type { WorkerMetrics } from "../metrics/metrics.ts";
import type { MinuteCounts } from "./minute-counts.ts";
import type { ProcessRecord } from "./process-record.ts";

/** What every worker gets from its process. */
export interface WorkerDeps {
  config: Pick<Config, "redisUrl" | "queueShards" | "workerShards">;
  pool: pg.Pool;
  deployment: DatabaseFence;
  log: Logger;
  metrics: Pick<WorkerMetrics, "foreignMessages" | "queueFetchers"> | null;
  process: Pick<ProcessRecord, "serve">;
  counts: Pick<MinuteCounts, "observeJob">;
}

/** The options that all workers of a process share, with the number of jobs that this worker runs at once. */
export function workerOptions(deps: WorkerDeps, concurrency: number): WorkerOptions {
  const { config, pool, deployment, log, metrics } = deps;
  return {
    redisUrl: config.redisUrl,
    queueShards: config.queueShards,
    workerShards: config.workerShards,
    deployment,
    reconnect: () => pool.query("SELECT"),
    concurrency,
    log,
    onForeignJob: () => metrics?.foreignMessages.with("job").inc(),
    onJob: (...times) => deps.counts.observeJob(...times),
    onShard(queue, shard, fetchers) {
      metrics?.queueFetchers.with(queue, shard).set(fetchers);
      deps.process.serve(queue);
    },
  };
}
