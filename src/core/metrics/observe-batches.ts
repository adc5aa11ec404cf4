import type { BatchObserver } from "../../platform/batching/batcher.ts";
import type { Traces } from "../../platform/traces/traces.ts";
import type { ServiceMetrics } from "./metrics.ts";

/** Where the sizes and durations of batches are recorded. `metrics` is null without METRICS_PORT. */
export interface Observing {
  metrics: Pick<ServiceMetrics, "batchItems" | "batchDuration"> | null;
  traces: Traces;
}

/** Makes an observer that measures the size and duration of one kind of batch and traces it. */
export function observeBatches(ctx: Observing, name: string): BatchObserver {
  const items = ctx.metrics?.batchItems.with(name);
  const duration = ctx.metrics?.batchDuration.with(name);
  return {
    // The cast is safe because the items of every observed batch are objects.
    submitted: (item) => ctx.traces.recordSubmission(item as object),
    async run(batch, work) {
      const startedAt = performance.now();
      try {
        return await ctx.traces.runBatch(name, batch as object[], work);
      } finally {
        items?.observe(batch.length);
        duration?.observe((performance.now() - startedAt) / 1_000);
      }
    },
  };
}
