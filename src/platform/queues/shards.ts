import { crc32 } from "node:zlib";
import { crc16, SLOTS } from "../redis/slots.ts";

/** Maximum number of shards per queue. */
export const SHARDS_MAX = 256;

/** One of the parts into which the queues are divided. */
export interface Shard {
  /** The shard's number, from 0. */
  index: number;
  /** The number of shards into which the queue is divided. */
  count: number;
  /** The shard's name. `0/6` is the first of six. */
  name: string;
  /** Prefix of the shard's keys. The braces are a hash tag: a Redis Cluster keeps all keys of a shard in one slot. */
  prefix: string;
}

/**
 * Lists a deployment's shards. The slots of a Redis Cluster are divided into `count` equal ranges, and each shard's
 * slot is near the middle of its range. So all masters have equally many shards if they have equally many slots, and if
 * `count` is a multiple of their number.
 */
export function listShards(deploymentId: string, count: number): Shard[] {
  return Array.from({ length: count }, (_, index) => findShard(deploymentId, index, count));
}

/** Lists the shards of a queue, for each of the given numbers of shards. */
export function listShardsOf(
  { shardBy }: { shardBy?: string },
  deploymentId: string,
  counts: readonly number[],
): Shard[] {
  return counts.flatMap((count) =>
    shardBy === undefined ? [findShard(deploymentId, 0, count)] : listShards(deploymentId, count),
  );
}

/**
 * Lists the shards of a queue that a worker process serves, for each number in `queueShards`: the shards with an index
 * in `workerShards`, or all if null.
 */
export function listServedShards(
  definition: { shardBy?: string },
  deploymentId: string,
  { queueShards, workerShards }: { queueShards: readonly number[]; workerShards: readonly number[] | null },
): Shard[] {
  return listShardsOf(definition, deploymentId, queueShards).filter(
    ({ index }) => workerShards === null || workerShards.includes(index),
  );
}

/** Returns one shard of a deployment. If there is only one shard, its keys contain no shard number. */
export function findShard(deploymentId: string, index: number, count: number): Shard {
  const name = `${index}/${count}`;
  const tag = count === 1 ? `pva:${deploymentId}` : findTag(`pva:${deploymentId}:${name}`, index, count);
  return { index, count, name, prefix: `{${tag}}` };
}

/** Returns the index of a job's shard. Jobs with the same key belong to the same shard. */
export function shardOf(key: string, count: number): number {
  return count === 1 ? 0 : crc32(key) % count;
}

/** Shards' hash tags by their prefixes, to find each only once. */
const tags = new Map<string, string>();
/** Maximum number of remembered tags. Enough for a deployment that changes its number of shards a few times. */
const TAGS_MAX = 2_048;

/** Returns the first numbered tag with a slot in the middle half of the shard's range: about one in `2 × count`. */
function findTag(prefix: string, index: number, count: number): string {
  const known = tags.get(prefix);
  if (known !== undefined) return known;
  // Computes the checksum of the text before the number only once: all tags begin with this text.
  const crc = crc16(`${prefix}:`);
  let number = 0;
  const position = () => ((crc16(String(number), crc) % SLOTS) * count) / SLOTS - index;
  for (let at = position(); at < 0.25 || at >= 0.75; at = position()) number += 1;
  if (tags.size >= TAGS_MAX) tags.clear();
  tags.set(prefix, `${prefix}:${number}`);
  return `${prefix}:${number}`;
}
