import type pg from "pg";
import { nextPiece } from "../../platform/batching/fair-slots.ts";
import { droppedLines } from "../../platform/logger.ts";
import type { ShardBacklog } from "../../platform/queues/measure-queues.ts";
import {
  type ApiMetrics,
  type MetricsPart,
  type OfWings,
  openMetrics,
  type Scrapable,
  type ServiceMetrics,
  type WorkerMetrics,
} from "./metrics.ts";
import type { StallMeter } from "./stall-meter.ts";

/** The state of a pool of database connections. */
interface MeasuredPool {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
  readonly options: { readonly max: number };
}

/** What every process measures about itself. */
interface Measured {
  pool: MeasuredPool;
  stalls: Pick<StallMeter, "takeLongestMs">;
}

interface MeasuredApi extends Measured {
  /** How long each shard has given no answer to canaries, which are jobs that redeem nothing. Milliseconds. */
  canary: { read(): { shards: readonly number[] } };
  wings: readonly MetricsPart[];
  backlogs: readonly WingBacklog<unknown>[];
}

/** Unfinished work in Postgres. */
export interface DatabaseBacklog {
  liveReservations: number;
  /** Age of the oldest event that waits for its seal. 0 if none waits. */
  sealLagMs: number;
  /** How far the database's clock has jumped ahead. Milliseconds. */
  clockAheadMs: number;
  /** Number of chains that were broken at their last check. */
  brokenChains: number;
  /** The measurements of each wing (an optional part of the service), by its name. */
  ofWings: Readonly<Record<string, unknown>>;
}

/** How to measure the unfinished work of a wing (an optional part of the service) in Postgres, and how to record it. */
export interface WingBacklog<Value> {
  name: string;
  measure(pool: pg.Pool): Promise<Value>;
  record(metrics: OfWings<"api">, value: Value): void;
}

/** Unfinished work of the whole deployment. A part is null if its server did not answer. */
export interface Backlog {
  shards: readonly ShardBacklog[] | null;
  database: DatabaseBacklog | null;
  /** The servers and shards that do not answer this process, or accept no writes. */
  down: { postgres: boolean; redis: boolean; shards: readonly string[] };
}

/**
 * Opens the metrics of an API process. Every API process reports the backlog of the whole deployment, so that the
 * backlog is known even while no worker runs. Queries must take the maximum over processes, not the sum. `readBacklog`
 * runs at each scrape and must not fail.
 */
export function openApiMetrics(measured: MeasuredApi, readBacklog: () => Promise<Backlog>): ApiMetrics {
  return openMetrics("api", measured.wings, async (metrics) => {
    // Records the process first, because measuring the backlog takes time and a connection of the measured pool.
    recordProcess(metrics, measured);
    await recordBacklog(metrics, measured.backlogs, await readBacklog());
    const { shards } = measured.canary.read();
    for (const [index, silentMs] of shards.entries())
      metrics.canarySilence.with(`${index}/${shards.length}`).set(silentMs / 1_000);
  });
}

/** Opens the metrics of a worker process. */
export function openWorkerMetrics(measured: Measured, wings: readonly MetricsPart[]): WorkerMetrics {
  return openMetrics("worker", wings, (metrics) => recordProcess(metrics, measured));
}

/** Number of dropped log lines that scrapes have already counted. */
let countedLines = 0;

function recordProcess(metrics: ServiceMetrics, { pool, stalls }: Measured): void {
  metrics.logLinesDropped.with().inc(droppedLines() - countedLines);
  countedLines = droppedLines();
  metrics.eventLoopStall.with().set(stalls.takeLongestMs() / 1_000);
  metrics.poolConnectionsMax.with().set(pool.options.max);
  metrics.poolConnections.with("busy").set(pool.totalCount - pool.idleCount);
  metrics.poolConnections.with("idle").set(pool.idleCount);
  metrics.poolWaitingCalls.with().set(pool.waitingCount);
}

/** Number of shards recorded in one turn of the event loop. They take about 2 ms. */
const PIECE = 64;

/** Replaces the recorded backlog by a new one. Removes each value that could not be measured. */
async function recordBacklog(
  metrics: Omit<ApiMetrics, keyof Scrapable>,
  backlogs: readonly WingBacklog<unknown>[],
  { shards, database, down }: Backlog,
): Promise<void> {
  metrics.clearGauges();
  metrics.serverUp.with("redis").set(!down.redis && shards?.some(({ queues }) => queues !== null) ? 1 : 0);
  metrics.serverUp.with("postgres").set(down.postgres || database === null ? 0 : 1);
  for (const [at, { shard, queues }] of (shards ?? []).entries()) {
    if (at % PIECE === 0) await nextPiece();
    metrics.shardUp.with(shard.name).set(queues === null || down.shards.includes(shard.name) ? 0 : 1);
    for (const { queue, oldestWaitingMs, waiting, active, failed, paused } of queues ?? []) {
      for (const [state, count] of Object.entries({ waiting, active, failed }))
        metrics.queueJobs.with(queue, shard.name, state).set(count);
      metrics.queuePaused.with(queue, shard.name).set(paused ? 1 : 0);
      metrics.queueOldestWaiting.with(queue, shard.name).set(oldestWaitingMs / 1_000);
    }
  }
  if (database === null) return;
  metrics.liveReservations.with().set(database.liveReservations);
  metrics.sealLag.with().set(database.sealLagMs / 1_000);
  metrics.clockAhead.with().set(database.clockAheadMs / 1_000);
  metrics.brokenChains.with().set(database.brokenChains);
  for (const { name, record } of backlogs) if (name in database.ofWings) record(metrics, database.ofWings[name]);
}
