import { Gauge } from "prom-client";
import type { ProcessMetrics } from "./process-metrics.ts";

/** What is known of a pool of database connections at any time. */
export interface PoolState {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
}

/**
 * Registers the use of a process's pool. It is read at the very beginning of each scrape: what is measured beside it needs a
 * connection, too.
 */
export function registerPoolMetrics(process: ProcessMetrics, pool: PoolState, max: number): void {
  const registers = [process.registry];
  const connections = new Gauge({
    name: "voucher_postgres_pool_connections",
    help: "Open connections to Postgres: lent out (busy) or not (idle).",
    labelNames: ["state"],
    registers,
  });
  const waiting = new Gauge({
    name: "voucher_postgres_pool_waiting_calls",
    help: "Calls that wait for a connection to Postgres.",
    registers,
  });
  new Gauge({
    name: "voucher_postgres_pool_connections_max",
    help: "Most connections to Postgres that this process opens.",
    registers,
  }).set(max);
  process.beforeScrape(() => {
    connections.set({ state: "busy" }, pool.totalCount - pool.idleCount);
    connections.set({ state: "idle" }, pool.idleCount);
    waiting.set(pool.waitingCount);
  });
}
