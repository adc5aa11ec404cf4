import { Gauge, type Registry } from "prom-client";
import type { QueueBacklog } from "../queues/measure-queues.ts";

/** What waits in Postgres. */
export interface DatabaseBacklog {
  liveHolds: number;
  /** Age of the oldest event that waits for its seal; 0 when none does. */
  sealLagMs: number;
}

/** What waits in Redis and Postgres; null for a server that did not answer. */
export interface Backlog {
  queues: readonly QueueBacklog[] | null;
  database: DatabaseBacklog | null;
}

/** What the whole deployment has still to do. Every process that reports it reports the same: take the maximum, not the sum. */
export class BacklogMetrics {
  readonly #up: Gauge<"server">;
  readonly #jobs: Gauge<"queue" | "state">;
  readonly #oldest: Gauge<"queue">;
  readonly #liveHolds: Gauge;
  readonly #sealLag: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#up = new Gauge({
      name: "voucher_server_up",
      help: "Whether Postgres and Redis answered this process within two seconds: 1 or 0.",
      labelNames: ["server"],
      registers,
    });
    this.#jobs = new Gauge({
      name: "voucher_queue_jobs",
      help: "Jobs in a queue: waiting for a worker, active, or failed and kept for looking at.",
      labelNames: ["queue", "state"],
      registers,
    });
    this.#oldest = new Gauge({
      name: "voucher_queue_oldest_waiting_seconds",
      help: "Age of the oldest job that waits for a worker; 0 when none does.",
      labelNames: ["queue"],
      registers,
    });
    this.#liveHolds = new Gauge({
      name: "voucher_live_holds",
      help: "Holds that are live, counted up to 100 000.",
      registers,
    });
    this.#sealLag = new Gauge({
      name: "voucher_seal_lag_seconds",
      help: "Age of the oldest event that waits for its seal; 0 when none does.",
      registers,
    });
  }

  /** Replaces what was known. What could not be measured is not reported, rather than reported as it was. */
  set({ queues, database }: Backlog): void {
    this.#jobs.reset();
    this.#oldest.reset();
    this.#liveHolds.remove();
    this.#sealLag.remove();
    this.#up.set({ server: "redis" }, queues === null ? 0 : 1);
    this.#up.set({ server: "postgres" }, database === null ? 0 : 1);
    for (const { queue, oldestWaitingMs, ...jobs } of queues ?? []) {
      for (const [state, count] of Object.entries(jobs)) this.#jobs.set({ queue, state }, count);
      this.#oldest.set({ queue }, oldestWaitingMs / 1_000);
    }
    if (database !== null) {
      this.#liveHolds.set(database.liveHolds);
      this.#sealLag.set(database.sealLagMs / 1_000);
    }
  }
}
