import pTimeout from "p-timeout";
import type { Logger } from "pino";
import { RateLimiterMemory, RateLimiterRedis, type RateLimiterRes } from "rate-limiter-flexible";
import type { RedisClient } from "../redis/connections.ts";

/** Longest wait for Redis, which normally responds within a millisecond. Milliseconds. */
const RESPONSE_MS = 250;
/** Pause after a failure, during which this process counts alone. Then one count tries Redis again. Milliseconds. */
const PAUSE_MS = 1_000;

/**
 * Adds points to the count of an id and returns the new total, and the time to the window's end in milliseconds. Never
 * rejects. A window begins with the id's first points.
 */
export type Counter = (id: string, points: number) => Promise<{ total: number; leftMs: number }>;

/** Opens a counter whose Redis keys are `limit:<name>:<id>`. */
export type OpenCounter = (name: string, windowSeconds: number) => Counter;

/**
 * Counts in Redis for all processes. While Redis is down or slow, each process counts alone. No call waits longer than
 * {@link RESPONSE_MS}.
 */
export function shareCounts(redis: RedisClient, log: Logger): OpenCounter {
  let failing = false;
  /** When a count tries Redis again, on the monotonic clock. Milliseconds. */
  let tryAgainAt = 0;
  return (name, windowSeconds) => {
    // The caller compares the total with its own limit, so the library needs no limit: `penalty` only counts.
    const options = { keyPrefix: `limit:${name}`, points: Number.MAX_SAFE_INTEGER, duration: windowSeconds };
    const shared = new RateLimiterRedis({ ...options, storeClient: redis, rejectIfRedisNotReady: true });
    const local = new RateLimiterMemory(options);
    return async (id, points) => {
      const now = performance.now();
      if (failing && now < tryAgainAt) return toCount(await local.penalty(id, points));
      tryAgainAt = now + PAUSE_MS;
      try {
        const timeout = { milliseconds: RESPONSE_MS, customTimers: timersAfterInput };
        const count = await pTimeout(shared.penalty(id, points), timeout);
        if (failing) log.info("Redis responds again; limits are shared");
        failing = false;
        return toCount(count);
      } catch (error) {
        tryAgainAt = performance.now() + PAUSE_MS;
        if (!failing) log.warn({ err: error }, "Redis does not respond; this process counts limits alone");
        failing = true;
        return toCount(await local.penalty(id, points));
      }
    };
  };
}

/**
 * Timers that fire after pending input was read, so that a busy process does not time out on a response that has
 * arrived.
 */
const timersAfterInput = {
  setTimeout: ((fail: () => void, ms: number) => setTimeout(() => setImmediate(fail), ms)) as typeof setTimeout,
  clearTimeout,
};

const toCount = ({ consumedPoints, msBeforeNext }: RateLimiterRes) => ({ total: consumedPoints, leftMs: msBeforeNext });
