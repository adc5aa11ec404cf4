import type { ShardBacklog } from "../queues/measure-queues.ts";
import { METRICS } from "./catalog.ts";
import { type ApiMetrics, openMetrics, type Scrapable, type ServiceMetrics, type WorkerMetrics } from "./metrics.ts";

/** The state of a pool of database connections. */
interface MeasuredPool {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
  readonly options: { readonly max: number };
}

/** Unfinished work in Postgres. */
export interface DatabaseBacklog {
  liveReservations: number;
  /** Age of the oldest event that waits for its seal; 0 when none waits. */
  sealLagMs: number;
  /** How far the database's clock has jumped ahead. Milliseconds. */
  clockAheadMs: number;
  /** Chains that were broken at their last check. */
  brokenChains: number;
  /** The served checkpoint: its number of leaves, and its age while leaves wait for the next one, otherwise 0. Null without a log. */
  log: { size: number; lagMs: number } | null;
  /** Unfinished deliveries, outbox rows, and how long the oldest delivery has been due. */
  webhooks: { pending: number; outbox: number; oldestDueMs: number };
  /** Vouchers that users can still acquire, for each of the newest listings. */
  stock: readonly { brand: string; left: number }[];
}

/** Unfinished work of the whole deployment; null for a server that did not answer. */
export interface Backlog {
  shards: readonly ShardBacklog[] | null;
  database: DatabaseBacklog | null;
}

/**
 * Opens the metrics of an API process. Every API process reports the backlog of the whole deployment, so that it is known while no worker
 * runs: take the maximum over processes, not the sum. `measureBacklog` runs at each scrape and must not fail.
 */
export function openApiMetrics(pool: MeasuredPool, measureBacklog: () => Promise<Backlog>): ApiMetrics {
  return openMetrics("api", async (metrics) => {
    // First, because measuring the backlog takes a connection itself.
    recordPool(metrics, pool);
    recordBacklog(metrics, await measureBacklog());
  });
}

/** Opens the metrics of a worker process. */
export function openWorkerMetrics(pool: MeasuredPool): WorkerMetrics {
  return openMetrics("worker", (metrics) => recordPool(metrics, pool));
}

function recordPool(metrics: ServiceMetrics, pool: MeasuredPool): void {
  metrics.poolConnectionsMax.with().set(pool.options.max);
  metrics.poolConnections.with("busy").set(pool.totalCount - pool.idleCount);
  metrics.poolConnections.with("idle").set(pool.idleCount);
  metrics.poolWaitingCalls.with().set(pool.waitingCount);
}

/** The gauges that only API processes report: each scrape measures them anew. */
const MEASURED_GAUGES = Object.entries(METRICS)
  .filter(([, { type, process }]) => type === "gauge" && process === "api")
  .map(([key]) => key as keyof Omit<ApiMetrics, keyof Scrapable>);

/** Replaces the last backlog. Values that could not be measured are removed, so that no old value is reported. */
function recordBacklog(metrics: Omit<ApiMetrics, keyof Scrapable>, { shards, database }: Backlog): void {
  for (const gauge of MEASURED_GAUGES) metrics[gauge].clear();
  metrics.serverUp.with("redis").set(shards?.some(({ queues }) => queues !== null) ? 1 : 0);
  metrics.serverUp.with("postgres").set(database === null ? 0 : 1);
  for (const { shard, queues } of shards ?? []) metrics.shardUp.with(shard.name).set(queues === null ? 0 : 1);
  for (const { queue, shard, oldestWaitingMs, ...jobs } of (shards ?? []).flatMap(({ queues }) => queues ?? [])) {
    for (const [state, count] of Object.entries(jobs)) metrics.queueJobs.with(queue, shard, state).set(count);
    metrics.queueOldestWaiting.with(queue, shard).set(oldestWaitingMs / 1_000);
  }
  if (database === null) return;
  metrics.liveReservations.with().set(database.liveReservations);
  metrics.sealLag.with().set(database.sealLagMs / 1_000);
  metrics.clockAhead.with().set(database.clockAheadMs / 1_000);
  metrics.brokenChains.with().set(database.brokenChains);
  if (database.log !== null) {
    metrics.logSize.with().set(database.log.size);
    metrics.logLag.with().set(database.log.lagMs / 1_000);
  }
  metrics.webhookPending.with().set(database.webhooks.pending);
  metrics.webhookOldestDue.with().set(database.webhooks.oldestDueMs / 1_000);
  metrics.webhookOutbox.with().set(database.webhooks.outbox);
  // Adds, because a brand can have several listings, and the label `other` stands for several brands.
  for (const { brand, left } of database.stock) metrics.stockLeft.with(brand).inc(left);
}
