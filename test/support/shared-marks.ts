import type { Redis } from "ioredis";
import type { Shared } from "../../src/domain/marks.ts";
import { memoryKey, readStarts } from "../../src/services/servers/share-memory.ts";

/** What the processes of a deployment share in Redis. */
export async function readSharedStarts(redis: Pick<Redis, "get">, deploymentId: string): Promise<Shared> {
  return readStarts((await redis.get(memoryKey(deploymentId))) ?? "", deploymentId);
}
