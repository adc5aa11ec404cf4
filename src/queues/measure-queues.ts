import type { Redis } from "ioredis";
import { QUEUE_NAMES, queuePrefix } from "./catalog.ts";

/** One queue's jobs by state, and the age of the oldest waiting one. */
export interface QueueBacklog {
  queue: string;
  waiting: number;
  active: number;
  /** Kept for operators, for at most a day. */
  failed: number;
  /** By the clocks of two hosts: the one that added the job and this one. 0 when none waits. */
  oldestWaitingMs: number;
}

/**
 * Counts the jobs of every queue in two round trips, from BullMQ's own keys: the lists `wait` (oldest last) and `active`, the sorted set
 * `failed`, and a job's `timestamp`. @throws Error when Redis does not answer.
 */
export async function measureQueues(redis: Redis, deploymentId: string): Promise<QueueBacklog[]> {
  const prefix = queuePrefix(deploymentId);
  const counts = redis.pipeline();
  for (const name of QUEUE_NAMES) {
    const key = `${prefix}:${name}`;
    counts.llen(`${key}:wait`).llen(`${key}:active`).zcard(`${key}:failed`).lindex(`${key}:wait`, -1);
  }
  const counted = resultsOf(await counts.exec());
  const ages = redis.pipeline();
  for (const [index, name] of QUEUE_NAMES.entries())
    ages.hget(`${prefix}:${name}:${counted[index * 4 + 3]}`, "timestamp");
  const timestamps = resultsOf(await ages.exec());
  return QUEUE_NAMES.map((queue, index) => {
    const [waiting, active, failed] = counted.slice(index * 4, index * 4 + 3).map(Number);
    const addedAtMs = timestamps[index];
    return {
      queue,
      waiting: waiting ?? 0,
      active: active ?? 0,
      failed: failed ?? 0,
      oldestWaitingMs: typeof addedAtMs === "string" ? Math.max(0, Date.now() - Number(addedAtMs)) : 0,
    };
  });
}

function resultsOf(replies: [error: Error | null, result: unknown][] | null): unknown[] {
  return (replies ?? []).map(([error, result]) => {
    if (error !== null) throw error;
    return result;
  });
}
