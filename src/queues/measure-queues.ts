import pTimeout from "p-timeout";
import type { RedisClient } from "../redis/connections.ts";
import { QUEUES } from "./catalog.ts";
import { listShards, type Shard } from "./shards.ts";

/** One shard of a queue: its jobs by state, and the age of the oldest waiting one. */
interface QueueBacklog {
  queue: string;
  /** The name of the shard. */
  shard: string;
  waiting: number;
  active: number;
  /** Kept for operators, for at most a day. */
  failed: number;
  /** Measured by the clocks of two hosts: the one that added the job and this one. 0 when no job waits. */
  oldestWaitingMs: number;
}

/** The backlog of one shard, for all queues. */
export interface ShardBacklog {
  shard: Shard;
  /** Null when the shard's server did not answer. */
  queues: QueueBacklog[] | null;
}

/** Longest wait for a shard. Milliseconds. */
const WAIT_MAX_MS = 1_500;

/** Counts the jobs of every queue, in two round trips per shard. `shardCounts` has two entries while the number of shards changes. Never rejects. */
export function measureQueues(
  redis: RedisClient,
  deploymentId: string,
  shardCounts: readonly number[],
): Promise<ShardBacklog[]> {
  const shards = shardCounts.flatMap((count) => listShards(deploymentId, count));
  return Promise.all(
    shards.map(async (shard) => ({
      shard,
      queues: await pTimeout(measureShard(redis, shard), { milliseconds: WAIT_MAX_MS }).catch(() => null),
    })),
  );
}

/** Whether each shard's server answers. Never rejects. */
export function probeShards(
  redis: RedisClient,
  deploymentId: string,
  count: number,
): Promise<{ shard: Shard; answers: boolean }[]> {
  return Promise.all(
    listShards(deploymentId, count).map(async (shard) => ({
      shard,
      answers: await pTimeout(redis.exists(`${shard.prefix}:probe`), { milliseconds: WAIT_MAX_MS }).then(
        () => true,
        () => false,
      ),
    })),
  );
}

/** Reads BullMQ's own keys: the lists `wait` (oldest last) and `active`, the sorted set `failed`, and a job's `timestamp`. */
async function measureShard(redis: RedisClient, { prefix, index, name: shard }: Shard): Promise<QueueBacklog[]> {
  const names = QUEUES.filter(({ shardBy }) => shardBy !== undefined || index === 0).map(({ name }) => name);
  // One node has all keys of a shard, so a pipeline can read them.
  const counts = redis.pipeline();
  for (const name of names) {
    const key = `${prefix}:${name}`;
    counts.llen(`${key}:wait`).llen(`${key}:active`).zcard(`${key}:failed`).lindex(`${key}:wait`, -1);
  }
  const counted = resultsOf(await counts.exec());
  const ages = redis.pipeline();
  for (const [index, name] of names.entries()) ages.hget(`${prefix}:${name}:${counted[index * 4 + 3]}`, "timestamp");
  const timestamps = resultsOf(await ages.exec());
  return names.map((queue, index) => {
    const [waiting, active, failed] = counted.slice(index * 4, index * 4 + 3).map(Number);
    const addedAtMs = timestamps[index];
    return {
      queue,
      shard,
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
