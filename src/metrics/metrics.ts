import { type Backlog, BacklogMetrics } from "./backlog-metrics.ts";
import { BatchMetrics } from "./batch-metrics.ts";
import type { PoolState } from "./pool-metrics.ts";
import { registerPoolMetrics } from "./pool-metrics.ts";
import { ProcessMetrics } from "./process-metrics.ts";
import { RedeemMetrics } from "./redeem-metrics.ts";
import { RequestMetrics } from "./request-metrics.ts";
import { SweepMetrics } from "./sweep-metrics.ts";

/** What every process measures. */
export interface ServiceMetrics {
  process: ProcessMetrics;
  batches: BatchMetrics;
}

/** What an API process measures. */
export interface ApiMetrics extends ServiceMetrics {
  requests: RequestMetrics;
  redeems: RedeemMetrics;
}

/** What a worker process measures. */
export interface WorkerMetrics extends ServiceMetrics {
  sweeps: SweepMetrics;
}

/** The pool of a process and how many connections it may open. */
export interface MeasuredPool {
  state: PoolState;
  max: number;
}

/**
 * Opens the metrics of an API process. It also reports what the whole deployment has still to do: somebody has to when all workers
 * are gone.
 * @param measureBacklog runs at each scrape; must not fail.
 */
export function openApiMetrics(pool: MeasuredPool, measureBacklog: () => Promise<Backlog>): ApiMetrics {
  const service = openServiceMetrics(pool);
  const { registry } = service.process;
  const backlog = new BacklogMetrics(registry);
  service.process.beforeScrape(async () => backlog.set(await measureBacklog()));
  return { ...service, requests: new RequestMetrics(registry), redeems: new RedeemMetrics(registry) };
}

/** Opens the metrics of a worker process. */
export function openWorkerMetrics(pool: MeasuredPool): WorkerMetrics {
  const service = openServiceMetrics(pool);
  return { ...service, sweeps: new SweepMetrics(service.process.registry) };
}

function openServiceMetrics(pool: MeasuredPool): ServiceMetrics {
  const process = new ProcessMetrics();
  registerPoolMetrics(process, pool.state, pool.max);
  return { process, batches: new BatchMetrics(process.registry) };
}
