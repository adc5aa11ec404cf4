import { crc32 } from "node:zlib";

/** Maximum number of shards per queue. */
export const SHARDS_MAX = 256;

/** Slots of a Redis Cluster. */
export const SLOTS = 16_384;

/** One of the parts that a queue is divided into. */
export interface Shard {
  /** Counts from 0. */
  index: number;
  /** The number of shards that the queue is divided into. */
  count: number;
  /** `0/6` is the first of six. */
  name: string;
  /** Prefix of its keys. The braces are a hash tag: a Redis Cluster keeps all keys of a shard in one slot. */
  prefix: string;
}

/**
 * Lists a deployment's shards. All slots are divided into `count` equal ranges, and the slot of each shard is near the middle of its range.
 * So masters with equal numbers of slots have equal numbers of shards, if `count` is a multiple of the number of masters.
 */
export function listShards(deploymentId: string, count: number): Shard[] {
  return Array.from({ length: count }, (_, index) => findShard(deploymentId, index, count));
}

/** Lists the shards of a queue for each of the given shard counts. */
export function listShardsOf(
  { shardBy }: { shardBy?: string },
  deploymentId: string,
  counts: readonly number[],
): Shard[] {
  return counts.flatMap((count) =>
    shardBy === undefined ? [findShard(deploymentId, 0, count)] : listShards(deploymentId, count),
  );
}

/** Returns one shard of a deployment. The keys of a single shard contain no shard number. */
export function findShard(deploymentId: string, index: number, count: number): Shard {
  const tag = count === 1 ? `pva:${deploymentId}` : findTag(`pva:${deploymentId}:${index}/${count}`, index, count);
  return { index, count, name: `${index}/${count}`, prefix: `{${tag}}` };
}

/** Returns the index of a job's shard. Jobs with the same key are in the same shard. */
export function shardOf(key: string, count: number): number {
  return count === 1 ? 0 : crc32(key) % count;
}

/** Returns the first numbered tag whose slot is in the middle half of the shard's range. About one tag in `2 × count` is. */
function findTag(start: string, index: number, count: number): string {
  for (let number = 0; ; number++) {
    const tag = `${start}:${number}`;
    const position = (slotOf(tag) * count) / SLOTS - index;
    if (position >= 0.25 && position < 0.75) return tag;
  }
}

/** Returns the slot of a hash tag: CRC-16/XMODEM modulo 16384, as the Redis Cluster specification requires. */
export function slotOf(tag: string): number {
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff;
  }
  return crc % SLOTS;
}
