import type { ServiceProcess } from "../core/processes/db/processes.ts";
import type { ShardBacklog } from "../platform/queues/measure-queues.ts";

/** A queue, summed over its shards. Counts and ages are null if the server of a shard does not answer. */
export interface QueueSummary {
  name: string;
  waiting: number | null;
  active: number | null;
  failed: number | null;
  /** 0 when no job waits. */
  oldestWaitingMs: number | null;
  /** Whether any shard that answered is paused. */
  paused: boolean;
  /** Worker processes that serve the queue and were seen lately. */
  workers: number;
}

/** Sums the shards of each queue, and counts its workers. Without shards, the result is as if no shard had answered. */
export function summarizeQueues(
  queues: readonly { name: string }[],
  shards: readonly ShardBacklog[],
  processes: readonly Pick<ServiceProcess, "queues" | "isUp">[],
): QueueSummary[] {
  const isWhole = shards.length > 0 && shards.every(({ queues }) => queues !== null);
  const backlogs = Map.groupBy(
    shards.flatMap(({ queues }) => queues ?? []),
    ({ queue }) => queue,
  );
  return queues.map(({ name }) => {
    const parts = backlogs.get(name) ?? [];
    const sum = (state: "waiting" | "active" | "failed") =>
      isWhole ? parts.reduce((total, part) => total + part[state], 0) : null;
    return {
      name,
      waiting: sum("waiting"),
      active: sum("active"),
      failed: sum("failed"),
      oldestWaitingMs: isWhole ? Math.max(0, ...parts.map((part) => part.oldestWaitingMs)) : null,
      paused: parts.some((part) => part.paused),
      workers: processes.filter(({ queues, isUp }) => isUp && queues.includes(name)).length,
    };
  });
}
