import { LOCK_CONNECTIONS } from "../core/callers/caller-kinds.ts";
import type { MetricsPart } from "../core/metrics/metrics.ts";
import { openWorkerMetrics } from "../core/metrics/open-metrics.ts";
import type { Config } from "../platform/config.ts";
import { TRACES_OFF, type Traces } from "../platform/traces/traces.ts";
import { openService } from "./open-service.ts";

/**
 * Maximum number of Postgres connections of a worker process: for redemptions (fast path, slow path), seals (fast path,
 * slow path), the sweeper, the log, webhooks (reads, attempts, confirmations), and marks.
 */
export const WORKER_CONNECTIONS_MAX = 2 * (1 + LOCK_CONNECTIONS.vouchers) + 1 + 1 + (1 + 1 + 1) + 1;

/** Opens what the workers of a process share. Each worker opens the rest, so a process loads only what it needs. */
export function openWorkerService(config: Config, wings: readonly MetricsPart[], traces: Traces = TRACES_OFF) {
  const service = openService(config, {
    traces,
    role: "worker",
    redisName: "worker",
    connectionsMax: WORKER_CONNECTIONS_MAX,
  });
  const announcements = { listener: () => {} };
  return {
    ...service,
    metrics: config.metricsPort === null ? null : openWorkerMetrics(service, wings),
    /** A webhook worker in this process sets the listener. Otherwise another process reads the outbox within 1 s. */
    announcements,
    /** Called after a commit with events for webhook endpoints. */
    onAnnounced: () => announcements.listener(),
  };
}

export type WorkerService = ReturnType<typeof openWorkerService>;
