import { z } from "zod";
import type { Memory, SharedMemory } from "../marks.ts";
import { type RedisClient, untilReady } from "../redis/connections.ts";
import { replaceText } from "../redis/replace-text.ts";

/**
 * Maximum wait while a connection opens. Long, because the machine may be busy when the process starts. Ends at once if
 * Redis refuses the connection. Milliseconds.
 */
const READY_MAX_MS = 4_000;

const mark = z.object({ position: z.int(), id: z.string() });
const shape = z.object({
  deploymentId: z.string(),
  timeline: z.string(),
  started: z.string(),
  host: z.string(),
  newest: mark.nullable(),
  lasting: mark.nullable(),
  acceptedLosses: z.array(z.string()),
});

/** The Redis key of the memory that a deployment's processes share. */
export const memoryKey = (deploymentId: string) => `pva:${deploymentId}:memory`;

/** Lets processes share what they remember of the database. If Redis does not answer, reads and writes nothing. */
export function shareMemory(redis: RedisClient): SharedMemory {
  return {
    async read(deploymentId) {
      try {
        await untilReady(redis, READY_MAX_MS);
        const text = (await redis.get(memoryKey(deploymentId))) ?? "";
        return { text, memory: parseMemory(text, deploymentId) };
      } catch {
        return null;
      }
    },
    async replace(memory, before) {
      const written = replaceText(redis, memoryKey(memory.deploymentId), before.text, JSON.stringify(memory));
      return (await written.catch(() => true)) !== false;
    },
  };
}

/** Parses the memory from a text in Redis. */
export function parseMemory(text: string, deploymentId: string): Memory | null {
  try {
    const { data } = shape.safeParse(JSON.parse(text));
    return data?.deploymentId === deploymentId ? data : null;
  } catch {
    return null;
  }
}
