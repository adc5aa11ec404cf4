import { Redis, type RedisOptions } from "ioredis";
import type { Logger } from "pino";
import { writeOnceATurn } from "../batching/write-once-a-turn.ts";
import { logErrors } from "./log-errors.ts";

/** Reconnects fast at first and then every second, for ever; leaves a primary that became read-only. */
const reconnecting = {
  connectTimeout: 2_000,
  retryStrategy: (attempt: number) => Math.min(50 * 2 ** Math.min(attempt, 5), 1_000) + Math.random() * 100,
  reconnectOnError: (error: Error): 2 | false => (error.message.includes("READONLY") ? 2 : false),
} satisfies RedisOptions;

/** When a connection that answers nothing while commands wait is given up. Longer than BullMQ's longest blocking command, which is 10 s. */
const SILENT_MS = 12_000;
/** The same where every command has failed by half this time. */
const SILENT_FAIL_FAST_MS = 3_000;

/**
 * A connection for calls that someone waits for: while Redis is away every command fails at once, while it hangs every command
 * fails within 1.5 s, and nothing is kept to be sent later.
 */
export function openFailFast(redisUrl: string, name: string, log: Logger): Redis {
  const redis = new Redis(redisUrl, {
    ...reconnecting,
    connectionName: name,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: 1_500,
    socketTimeout: SILENT_FAIL_FAST_MS,
  });
  redis.on("connect", () => writeOnceATurn(redis.stream));
  logErrors(redis, log.child({ connection: name }), "Redis connection");
  return redis;
}

/**
 * A connection that waits for Redis, however long it is away: for workers and for listening, which nobody waits for. The caller
 * closes it.
 */
export function openPatient(redisUrl: string, name: string, log: Logger): Redis {
  const redis = new Redis(redisUrl, {
    ...reconnecting,
    connectionName: name,
    maxRetriesPerRequest: null,
    socketTimeout: SILENT_MS,
  });
  redis.on("connect", () => writeOnceATurn(redis.stream));
  logErrors(redis, log.child({ connection: name }), "Redis connection");
  return redis;
}
