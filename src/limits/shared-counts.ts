import pTimeout from "p-timeout";
import type { Logger } from "pino";
import { RateLimiterMemory, RateLimiterRedis, type RateLimiterRes } from "rate-limiter-flexible";
import type { RedisClient } from "../redis/connections.ts";

/** Longest wait for Redis, which normally responds within a millisecond. Milliseconds. */
const RESPONSE_MS = 250;
/** Pause after a failure, during which this process counts alone. Then one count tries Redis again. Milliseconds. */
const PAUSE_MS = 1_000;

/** The count in the current window. */
export interface Count {
  total: number;
  /** Time to the window's end, in milliseconds. */
  leftMs: number;
}

/** Adds points to the count of an id and returns the new total. Never rejects. A window begins with the id's first points. */
export type Counter = (id: string, points: number) => Promise<Count>;

/** Counts in Redis for all processes. While Redis is down or slow, each process counts alone. No call waits longer than {@link RESPONSE_MS}. */
export class SharedCounts {
  readonly #redis: RedisClient;
  readonly #log: Logger;
  #failing = false;
  /** On the monotonic clock, milliseconds. */
  #tryAgainAt = 0;

  constructor(redis: RedisClient, log: Logger) {
    this.#redis = redis;
    this.#log = log;
  }

  /** Opens a counter whose Redis keys are `limit:<name>:<id>`. */
  open(name: string, windowSeconds: number): Counter {
    // The caller compares the total with its own limit, so the library needs none: `penalty` only counts.
    const options = { keyPrefix: `limit:${name}`, points: Number.MAX_SAFE_INTEGER, duration: windowSeconds };
    const shared = new RateLimiterRedis({ ...options, storeClient: this.#redis, rejectIfRedisNotReady: true });
    const local = new RateLimiterMemory(options);
    return async (id, points) => {
      if (this.#mayTryRedis()) {
        try {
          const count = await pTimeout(shared.penalty(id, points), {
            milliseconds: RESPONSE_MS,
            customTimers: timersAfterInput,
          });
          this.#recover();
          return toCount(count);
        } catch (error) {
          this.#fail(error);
        }
      }
      return toCount(await local.penalty(id, points));
    };
  }

  /** Whether to try Redis. After a failure, allows one attempt per pause. */
  #mayTryRedis(): boolean {
    if (!this.#failing) return true;
    const now = performance.now();
    if (now < this.#tryAgainAt) return false;
    this.#tryAgainAt = now + PAUSE_MS;
    return true;
  }

  #fail(error: unknown): void {
    this.#tryAgainAt = performance.now() + PAUSE_MS;
    if (this.#failing) return;
    this.#failing = true;
    this.#log.warn({ err: error }, "Redis does not respond; this process counts limits alone");
  }

  #recover(): void {
    if (!this.#failing) return;
    this.#failing = false;
    this.#log.info("Redis responds again; limits are shared");
  }
}

/** Timers that fire after pending input was read, so that a busy process does not time out on a response that has arrived. */
const timersAfterInput = {
  setTimeout: ((fail: () => void, ms: number) => setTimeout(() => setImmediate(fail), ms)) as typeof setTimeout,
  clearTimeout,
};

function toCount({ consumedPoints, msBeforeNext }: RateLimiterRes): Count {
  return { total: consumedPoints, leftMs: msBeforeNext };
}
