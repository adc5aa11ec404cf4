import type { Redis } from "ioredis";
import type { Shared } from "../../src/platform/marks.ts";
import { memoryKey, readStarts } from "../../src/platform/servers/share-memory.ts";

/** What the processes of a deployment share in Redis. */
export async function readSharedStarts(redis: Pick<Redis, "get">, deploymentId: string): Promise<Shared> {
  return readStarts((await redis.get(memoryKey(deploymentId))) ?? "", deploymentId);
}
