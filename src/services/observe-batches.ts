import type { BatchObserver } from "../batching/coalescer.ts";
import type { ServiceContext } from "../context.ts";
import type { BatchName } from "../metrics/batch-metrics.ts";

/** Observes one kind of batch: how many items it has, how long it takes, and whose they are. */
export function observeBatches(ctx: Pick<ServiceContext, "metrics" | "traces">, name: BatchName): BatchObserver {
  const meter = ctx.metrics?.batches.meter(name);
  return {
    // Every batch of the service is one of objects.
    submitted: (item) => ctx.traces.mark(item as object),
    async run(items, work) {
      const startedAt = performance.now();
      try {
        return await ctx.traces.batch(name, items as object[], work);
      } finally {
        meter?.observe(items.length, performance.now() - startedAt);
      }
    },
  };
}
