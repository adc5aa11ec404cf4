import type { Redis } from "ioredis";
import { watchCommands } from "./redis-monitor.ts";

/** All commands that a Redis server has received, with published messages and commands of scripts. */
export interface RedisRecord {
  /** One command per line. */
  text(): string;
  close(): void;
}

/** Starts to record every command that a server receives. */
export async function recordRedis(redisUrl: string): Promise<RedisRecord> {
  const { hostname, port, password } = new URL(redisUrl);
  const lines: string[] = [];
  const socket = await watchCommands(
    { host: hostname, port: Number(port), password: decodeURIComponent(password) },
    (line) => lines.push(line),
  );
  return { text: () => lines.join("\n"), close: () => void socket.destroy() };
}

/** Dumps every key of a Redis database with its content. */
export async function dumpRedis(redis: Redis): Promise<string> {
  const lines: string[] = [];
  for (const key of await redis.keys("*")) lines.push(`${key} ${JSON.stringify(await readKey(redis, key))}`);
  return lines.join("\n");
}

async function readKey(redis: Redis, key: string): Promise<unknown> {
  const type = await redis.type(key);
  switch (type) {
    case "string":
      return redis.get(key);
    case "hash":
      return redis.hgetall(key);
    case "list":
      return redis.lrange(key, 0, -1);
    case "set":
      return redis.smembers(key);
    case "zset":
      return redis.zrange(key, "0", "-1", "WITHSCORES");
    case "stream":
      return redis.xrange(key, "-", "+");
    // The key expired after it was listed.
    case "none":
      return null;
    default:
      throw new Error(`${key} is a ${type}, which this cannot read`);
  }
}
