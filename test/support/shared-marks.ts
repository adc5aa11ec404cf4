import type { Redis } from "ioredis";
import type { Memory } from "../../src/platform/marks.ts";
import { memoryKey, parseMemory } from "../../src/platform/servers/share-memory.ts";

/** Reads the data that the processes of a deployment share in Redis. */
export async function readShared(redis: Pick<Redis, "get">, deploymentId: string): Promise<Memory | null> {
  return parseMemory((await redis.get(memoryKey(deploymentId))) ?? "", deploymentId);
}
