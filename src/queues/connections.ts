import { once } from "node:events";
import { Redis, type RedisOptions } from "ioredis";
import type { Logger } from "pino";
import { writeOnceATurn } from "../batching/write-once-a-turn.ts";
import { logErrors } from "./log-errors.ts";

/** Reconnects fast at first and then every second, without end. Reconnects also when the server has become a read-only replica. */
const reconnecting = {
  connectTimeout: 2_000,
  retryStrategy: (attempt: number) => Math.min(50 * 2 ** Math.min(attempt, 5), 1_000) + Math.random() * 100,
  reconnectOnError: (error: Error): 2 | false => (error.message.includes("READONLY") ? 2 : false),
} satisfies RedisOptions;

/** A connection is closed when commands wait and nothing arrives for this long. Longer than BullMQ's longest blocking command, which takes 10 s. */
const SILENT_MS = 12_000;
/** The same for fail-fast connections, whose commands fail after half this time. */
const SILENT_FAIL_FAST_MS = 3_000;

/** For commands that a caller waits for. They fail at once without Redis, within 1.5 s while it hangs; none is sent later. */
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

/** A connection that waits for Redis without limit, for workers and subscriptions. The caller closes it. */
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

/** Longest wait of a command for its first connection to Redis. Milliseconds. */
const CONNECT_MAX_MS = 2_000;

/** Resolves once a connection can send commands. @throws Error after two seconds. */
export async function untilReady(redis: Redis): Promise<void> {
  if (redis.status !== "ready") await once(redis, "ready", { signal: AbortSignal.timeout(CONNECT_MAX_MS) });
}
