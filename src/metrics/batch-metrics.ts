import { Histogram, type Registry } from "prom-client";

/** What is done for several callers at once: burns, moves of holds, and the reads of vouchers that callers name. */
export type BatchName = "redeem" | "holds" | "lookups";

/** Powers of two up to the largest batch there is. */
const SIZE_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/** Seconds; a batch takes milliseconds, and seconds when it waits for a locked row. */
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Measures one kind of batch. */
export interface BatchMeter {
  observe(items: number, durationMs: number): void;
}

/** How many callers share a transaction or a statement, and how long it takes. */
export class BatchMetrics {
  readonly #sizes: Histogram<"batch">;
  readonly #durations: Histogram<"batch">;

  constructor(registry: Registry) {
    this.#sizes = new Histogram({
      name: "voucher_batch_items",
      help: "Items in one batch: redeems or moves of holds in a transaction, look-ups in a statement.",
      labelNames: ["batch"],
      buckets: SIZE_BUCKETS,
      registers: [registry],
    });
    this.#durations = new Histogram({
      name: "voucher_batch_duration_seconds",
      help: "Time that a batch takes, with everything that it waits for in Postgres.",
      labelNames: ["batch"],
      buckets: DURATION_BUCKETS,
      registers: [registry],
    });
  }

  /** The meter of one kind of batch. */
  meter(batch: BatchName): BatchMeter {
    const sizes = this.#sizes.labels(batch);
    const durations = this.#durations.labels(batch);
    return {
      observe(items, durationMs) {
        sizes.observe(items);
        durations.observe(durationMs / 1_000);
      },
    };
  }
}
