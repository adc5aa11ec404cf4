import { readFileSync } from "node:fs";
import type { RedisClient } from "./connections.ts";

const REPLACE = readFileSync(new URL("./replace-text.lua", import.meta.url), "utf8");

/**
 * Replaces the text of a key, if it is still `before`. Otherwise returns false. The empty text stands for a missing
 * key.
 * @throws Error when the server does not answer.
 */
export async function replaceText(redis: RedisClient, key: string, before: string, text: string): Promise<boolean> {
  return (await redis.eval(REPLACE, 1, key, before, text)) === 1;
}
