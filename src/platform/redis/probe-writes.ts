import { readFileSync } from "node:fs";
import { ReplyError } from "ioredis";
import type { RedisClient } from "./connections.ts";

const PROBE = readFileSync(new URL("./probe-writes.lua", import.meta.url), "utf8");

/**
 * Writes and removes keys of the same kinds as a reservation and a job, under a prefix. Returns null, or the message of
 * a server that refuses.
 * @throws Error when the server does not answer.
 */
export async function probeWrites(redis: Pick<RedisClient, "eval">, prefix: string): Promise<string | null> {
  try {
    await redis.eval(PROBE, 1, `${prefix}:probe:${crypto.randomUUID()}`);
    return null;
  } catch (error) {
    if (!(error instanceof Error && error instanceof ReplyError)) throw error;
    // Removes the script's hash and line, which Redis adds to the message.
    return asSentence(error.message.replace(/,? ?script: [0-9a-f]{40}.*$/s, ""));
  }
}

const asSentence = (text: string) => `${text.trim().replace(/\.$/, "")}.`;
