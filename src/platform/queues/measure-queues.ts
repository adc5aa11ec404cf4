import pTimeout from "p-timeout";
import { nextPiece } from "../batching/fair-slots.ts";
import type { RedisClient } from "../redis/connections.ts";
import { probeWrites } from "../redis/probe-writes.ts";
import type { QueueSettings } from "./queue-settings.ts";
import { listShards, type Shard } from "./shards.ts";

/** The jobs of one shard of a queue, by state, the age of the oldest waiting one, and whether workers may take jobs. */
export interface QueueBacklog {
  queue: string;
  /** The name of the shard. */
  shard: string;
  waiting: number;
  active: number;
  /** Failed jobs, kept for operators for at most a day. */
  failed: number;
  /** Measured by the clocks of the host that added the job and of this host. 0 if no job waits. */
  oldestWaitingMs: number;
  /** While true, workers take no jobs of the shard. */
  paused: boolean;
}

/** The backlog of one shard, for all queues. */
export interface ShardBacklog {
  shard: Shard;
  /** Null if the shard's server did not answer. */
  queues: QueueBacklog[] | null;
}

/** Maximum wait for a shard. Milliseconds. */
const WAIT_MAX_MS = 1_500;
/** Maximum wait for a shard's answer to a probe. It is shorter than the limit of the whole probe. Milliseconds. */
const PROBE_MAX_MS = 1_000;
/** Number of shards to ask in one turn of the event loop. Their commands take about 3 ms. */
const PIECE = 16;

/** Does work for each shard. `work` must not reject. */
async function onEach<T>(shards: readonly Shard[], work: (shard: Shard) => Promise<T>): Promise<T[]> {
  const begun: Promise<T>[] = [];
  for (let at = 0; at < shards.length; at += PIECE) {
    await nextPiece();
    begun.push(...shards.slice(at, at + PIECE).map(work));
  }
  return Promise.all(begun);
}

/**
 * Counts the jobs of every queue, in two round trips per shard. `queueShards` has two numbers while the number of
 * shards is being changed. Never rejects.
 */
export function measureQueues(
  redis: RedisClient,
  deploymentId: string,
  { queueShards, queues }: { queueShards: readonly number[]; queues: readonly QueueSettings[] },
): Promise<ShardBacklog[]> {
  const shards = queueShards.flatMap((count) => listShards(deploymentId, count));
  return onEach(shards, async (shard) => ({
    shard,
    queues: await pTimeout(measureShard(redis, queues, shard), { milliseconds: WAIT_MAX_MS }).catch(() => null),
  }));
}

/** A shard whose server accepts no jobs. `refusal` is the server's own message, or null if it does not answer. */
export interface RefusingShard {
  shard: Shard;
  refusal: string | null;
}

/** Returns the shards whose servers refuse the writes of reservations and jobs. Never rejects. */
export async function probeShards(redis: RedisClient, shards: readonly Shard[]): Promise<RefusingShard[]> {
  const probed = await onEach(shards, async (shard) => {
    const answer = pTimeout(probeWrites(redis, shard.prefix), { milliseconds: PROBE_MAX_MS });
    return answer.then(
      (refusal) => (refusal === null ? [] : [{ shard, refusal }]),
      () => [{ shard, refusal: null }],
    );
  });
  return probed.flat();
}

/**
 * Reads BullMQ's own keys: the lists `wait` (oldest last) and `active`, the sorted set `failed`, the field `paused` of
 * `meta`, and a job's `timestamp`.
 */
async function measureShard(
  redis: RedisClient,
  queues: readonly QueueSettings[],
  { prefix, index, name: shard }: Shard,
): Promise<QueueBacklog[]> {
  const names = queues.filter(({ shardBy }) => shardBy !== undefined || index === 0).map(({ name }) => name);
  // Reads all keys of a shard in one pipeline, because they are on one node.
  const counts = redis.pipeline();
  for (const name of names) {
    const key = `${prefix}:${name}`;
    counts.llen(`${key}:wait`).llen(`${key}:active`).zcard(`${key}:failed`).hexists(`${key}:meta`, "paused");
    counts.lindex(`${key}:wait`, -1);
  }
  const counted = resultsOf(await counts.exec());
  const ages = redis.pipeline();
  for (const [index, name] of names.entries()) ages.hget(`${prefix}:${name}:${counted[index * 5 + 4]}`, "timestamp");
  const timestamps = resultsOf(await ages.exec());
  return names.map((queue, index) => {
    const [waiting, active, failed, paused] = counted.slice(index * 5, index * 5 + 4).map(Number);
    const addedAtMs = timestamps[index];
    return {
      queue,
      shard,
      waiting: waiting ?? 0,
      active: active ?? 0,
      failed: failed ?? 0,
      oldestWaitingMs: typeof addedAtMs === "string" ? Math.max(0, Date.now() - Number(addedAtMs)) : 0,
      paused: paused === 1,
    };
  });
}

function resultsOf(replies: [error: Error | null, result: unknown][] | null): unknown[] {
  return (replies ?? []).map(([error, result]) => {
    if (error !== null) throw error;
    return result;
  });
}
