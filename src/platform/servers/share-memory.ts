import { z } from "zod";
import type { Memory, Shared, SharedMemory } from "../marks.ts";
import { type RedisClient, untilReady } from "../redis/connections.ts";
import { replaceText } from "../redis/replace-text.ts";

/**
 * Longest wait for a connection that is being opened, by a process that starts on a busy machine. Ends at once when
 * Redis refuses it. Milliseconds.
 */
const READY_MAX_MS = 4_000;

const mark = z.object({ position: z.int(), id: z.string() });
const memory = z.object({
  deploymentId: z.string(),
  timeline: z.string(),
  started: z.string().nullable().default(null),
  newest: mark,
  lasting: mark.nullable(),
  acceptedLosses: z.array(z.string()),
});

/**
 * One key has all starts, so that they change together. Earlier releases read only the first start and drop the others.
 */
const shared = memory.extend({
  marks: z.int().default(0),
  later: z.array(z.object({ memory, marks: z.int() })).default([]),
});

/** The Redis key of what the processes of a deployment have seen of its database. */
export const memoryKey = (deploymentId: string) => `pva:${deploymentId}:memory`;
/** The Redis key of the memory with the mark that a refused server lacks. */
const lackedKey = (deploymentId: string) => `pva:${deploymentId}:lacked`;

/**
 * Shares what the processes of a deployment have seen of its database. Without an answer from Redis, reads and writes
 * nothing.
 */
export function shareMemory(redis: RedisClient): SharedMemory {
  const ignore = () => undefined;
  return {
    async read(deploymentId) {
      try {
        await untilReady(redis, READY_MAX_MS);
        const keys = [memoryKey(deploymentId), lackedKey(deploymentId)];
        const [text = "", lacked = ""] = await Promise.all(keys.map(async (key) => (await redis.get(key)) ?? ""));
        return { text, starts: readStarts(text, deploymentId), lacked: parse(memory, lacked, deploymentId) };
      } catch {
        return null;
      }
    },
    async replace([first, ...later], before) {
      if (first === undefined) return true;
      const { memory, marks } = first;
      const text = JSON.stringify({ ...memory, marks, later });
      const written = replaceText(redis, memoryKey(memory.deploymentId), before.text, text);
      return (await written.catch(ignore)) !== false;
    },
    async keepLacked(lacked) {
      await redis.set(lackedKey(lacked.deploymentId), JSON.stringify(lacked)).catch(ignore);
    },
  };
}

/** The starts of a text in Redis. */
export function readStarts(text: string, deploymentId: string): Shared {
  const read = parse(shared, text, deploymentId);
  if (read === null) return [];
  const { marks, later, ...memory } = read;
  return [{ memory, marks }, ...later];
}

function parse<T extends Memory>(schema: z.ZodType<T>, text: string, deploymentId: string): T | null {
  try {
    const { data } = schema.safeParse(JSON.parse(text));
    return data?.deploymentId === deploymentId ? data : null;
  } catch {
    return null;
  }
}
