import { Histogram, type Registry } from "prom-client";

/** Seconds; from a lone job on a quiet machine to a wait that was given up. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15];

/** Where a redeem spent the time between asking for its job and having the reply. Milliseconds. */
export interface RedeemWait {
  waitedMs: number;
  /** From the job's making to a worker's beginning with it, as the worker tells. */
  queuedMs: number;
  /** From there to the end of its transaction, as the worker tells. */
  workedMs: number;
}

/** How long redeems wait, and for what. */
export class RedeemMetrics {
  readonly #phases: Record<"queue" | "transaction" | "reply", Histogram.Internal<"phase">>;

  constructor(registry: Registry) {
    const waits = new Histogram({
      name: "voucher_redeem_wait_seconds",
      help: "What a redeem waited for: a worker (queue), its decision and commit (transaction), the way there and back (reply).",
      labelNames: ["phase"],
      buckets: BUCKETS,
      registers: [registry],
    });
    this.#phases = {
      queue: waits.labels("queue"),
      transaction: waits.labels("transaction"),
      reply: waits.labels("reply"),
    };
  }

  /** Counts one redeem that got its reply. Two hosts' clocks that differ never make a phase negative. */
  observe({ waitedMs, queuedMs, workedMs }: RedeemWait): void {
    this.#phases.queue.observe(Math.max(0, queuedMs) / 1_000);
    this.#phases.transaction.observe(Math.max(0, workedMs) / 1_000);
    this.#phases.reply.observe(Math.max(0, waitedMs - queuedMs - workedMs) / 1_000);
  }
}
