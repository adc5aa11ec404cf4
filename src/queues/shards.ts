import { crc32 } from "node:zlib";

/** Most shards of a queue. */
export const SHARDS_MAX = 256;

/** Slots of a Redis Cluster. */
export const SLOTS = 16_384;

/** One of the parts that a queue is divided into. */
export interface Shard {
  /** From 0. */
  index: number;
  /** The number of shards that the queue is divided into. */
  count: number;
  /** `0/6` is the first of six. */
  name: string;
  /** Prefix of its keys. The braces are a hash tag: a Redis Cluster keeps all keys of a shard in one slot. */
  prefix: string;
}

/**
 * A deployment's shards. Their slots lie in the middle of equal parts of all slots, so that a cluster whose masters have equal parts
 * carries equal numbers of shards. A single shard has no number in its keys.
 */
export function listShards(deploymentId: string, count: number): Shard[] {
  return Array.from({ length: count }, (_, index) => findShard(deploymentId, index, count));
}

/** The shards of a queue, for each of the given numbers of shards. */
export function listShardsOf(
  { shardBy }: { shardBy?: string },
  deploymentId: string,
  counts: readonly number[],
): Shard[] {
  return counts.flatMap((count) =>
    shardBy === undefined ? [findShard(deploymentId, 0, count)] : listShards(deploymentId, count),
  );
}

/** One shard of a deployment. */
export function findShard(deploymentId: string, index: number, count: number): Shard {
  const tag = count === 1 ? `pva:${deploymentId}` : findTag(`pva:${deploymentId}:${index}/${count}`, index, count);
  return { index, count, name: `${index}/${count}`, prefix: `{${tag}}` };
}

/** The shard of a job, by the key that all jobs about the same thing share. */
export function shardOf(key: string, count: number): number {
  return count === 1 ? 0 : crc32(key) % count;
}

/** The first of the numbered tags whose slot lies in the middle half of the shard's part. About one in `2 × count` does. */
function findTag(start: string, index: number, count: number): string {
  for (let number = 0; ; number++) {
    const tag = `${start}:${number}`;
    const place = (slotOf(tag) * count) / SLOTS - index;
    if (place >= 0.25 && place < 0.75) return tag;
  }
}

/** The slot of a hash tag: CRC-16/XMODEM modulo 16384, as the Redis Cluster specification requires. */
export function slotOf(tag: string): number {
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff;
  }
  return crc % SLOTS;
}
