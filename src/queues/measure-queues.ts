import type { Redis } from "ioredis";
import { PREFIX, redeemQueue, sealQueue, sweepQueue } from "./catalog.ts";

/** The jobs of one queue by their state, and how long the oldest of those that wait has been waiting. */
export interface QueueBacklog {
  queue: string;
  waiting: number;
  active: number;
  /** Kept for people to look at, for a day at most. */
  failed: number;
  /** By the clocks of the hosts that added the job and that ask now. 0 when none waits. */
  oldestWaitingMs: number;
}

/**
 * Counts the jobs of every queue in two round trips, whatever their number. Reads BullMQ's own keys: the lists `wait`, whose oldest
 * job is the last, and `active`, the sorted set `failed`, and the field `timestamp` of a job's hash.
 * @throws Error when Redis does not answer.
 */
export async function measureQueues(redis: Redis): Promise<QueueBacklog[]> {
  const names = [redeemQueue, sealQueue, sweepQueue].map((definition) => definition.name);
  const counts = redis.pipeline();
  for (const name of names) {
    const key = `${PREFIX}:${name}`;
    counts.llen(`${key}:wait`).llen(`${key}:active`).zcard(`${key}:failed`).lindex(`${key}:wait`, -1);
  }
  const counted = resultsOf(await counts.exec());
  const ages = redis.pipeline();
  for (const [index, name] of names.entries()) ages.hget(`${PREFIX}:${name}:${counted[index * 4 + 3]}`, "timestamp");
  const timestamps = resultsOf(await ages.exec());
  return names.map((queue, index) => {
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
