import { RateLimiterMemory, RateLimiterRedis } from "rate-limiter-flexible";
import type { RedisClient } from "../redis/connections.ts";

/** Length of a window. Milliseconds. */
const WINDOW_MS = 1_000;
/**
 * A process takes a caller's calls from Redis in chunks of a twentieth of the limit: a round trip for each call would
 * cost more CPU than the rest of a look-up's limits and authentication.
 */
const CHUNKS = 20;
/**
 * Maximum number of callers whose windows are kept. Redis, or the limiter in memory, knows how much each caller has
 * used.
 */
const CALLERS_MAX = 10_000;

/** Counts in Redis for all processes. Never rejects: while Redis does not answer, the process counts alone. */
export type Counter = Pick<RateLimiterRedis, "penalty">;

/** Opens the counts with the keys `limit:<name>:<id>`. An id's window begins with its first points. */
export function openCounter(redis: RedisClient, name: string, windowSeconds: number): Counter {
  // The limiters compare the total with their limits, so that `penalty`, which only counts, is enough.
  const options = { keyPrefix: `limit:${name}`, points: Number.MAX_SAFE_INTEGER, duration: windowSeconds };
  const insuranceLimiter = new RateLimiterMemory(options);
  return new RateLimiterRedis({ ...options, storeClient: redis, rejectIfRedisNotReady: true, insuranceLimiter });
}

/** Whether a call is allowed, and the caller's remaining limit. */
export interface Allowance {
  allowed: boolean;
  /** Calls that all processes together still allow in this window, as far as this process knows. */
  remaining: number;
  /** Time to the window's end, in milliseconds. */
  resetMs: number;
}

/** What this process knows about a caller's current window. */
interface Window {
  /** The window's end on the monotonic clock. Milliseconds. */
  endsAt: number;
  /** Calls that this process may allow without Redis. The window begins with some, which the first fetch takes too. */
  tokens: number;
  /** Tokens left in the count, as last read. Never rises within a window, even if the count restarts from zero. */
  left: number;
  /** Tokens that Redis does not know of yet. */
  debt: number;
  /** Whether `endsAt` comes from the count. Until the first fetch, it comes from this process's own clock. */
  isShared: boolean;
  /** Calls that wait for tokens. */
  waiting: number;
  fetching: Promise<void> | null;
}

/**
 * Allows each caller `limit` calls a second over all processes. Fetches tokens from the count before they run out, and
 * begins each window with a chunk that it fetches later, so a call rarely waits for Redis, and an occasional caller
 * needs no round trip. Windows begin with a caller's first call. N processes together allow `limit` calls, plus or
 * minus N times a thirteenth of it: a process leaves at most one and a half chunks unused, and gives at most one.
 */
export class RateLimiter {
  /** The limit's name in responses. */
  readonly name: string;
  /** Calls a second. */
  readonly limit: number;
  readonly #counter: Counter;
  readonly #chunk: number;
  readonly #windows = new Map<string, Window>();

  constructor(name: string, limit: number, counter: Counter) {
    this.name = name;
    this.limit = limit;
    this.#counter = counter;
    this.#chunk = Math.ceil(limit / CHUNKS);
  }

  /** Number of remembered callers. */
  get size(): number {
    return this.#windows.size;
  }

  /** Counts one call of a caller and decides whether it is allowed. */
  take(id: string): Allowance | Promise<Allowance> {
    const now = performance.now();
    const window = this.#windowOf(id, now);
    const resetMs = Math.floor(window.endsAt - now);
    if (window.tokens > 0) {
      window.tokens -= 1;
      if (window.tokens < Math.floor(this.#chunk / 2) && window.left > 0) void this.#fetchOnce(id, window);
      return { allowed: true, remaining: window.left + window.tokens, resetMs };
    }
    if (window.left === 0) return { allowed: false, remaining: 0, resetMs };
    window.waiting += 1;
    return this.#fetchOnce(id, window).then(() => {
      window.waiting -= 1;
      return this.take(id);
    });
  }

  #windowOf(id: string, now: number): Window {
    const known = this.#windows.get(id);
    if (known !== undefined && known.endsAt > now) return known;
    if (this.#windows.size >= CALLERS_MAX) this.#windows.clear();
    // Limits below the number of chunks are exact.
    const tokens = Math.floor(this.limit / CHUNKS);
    const endsAt = now + WINDOW_MS;
    const left = this.limit - tokens;
    const window = { endsAt, tokens, left, debt: tokens, isShared: false, waiting: 0, fetching: null };
    this.#windows.set(id, window);
    return window;
  }

  /** Fetches tokens, or waits for the fetch that is under way. */
  #fetchOnce(id: string, window: Window): Promise<void> {
    window.fetching ??= this.#fetch(id, window).finally(() => {
      window.fetching = null;
    });
    return window.fetching;
  }

  async #fetch(id: string, window: Window): Promise<void> {
    const { debt } = window;
    const wanted = Math.max(this.#chunk, window.waiting);
    window.debt = 0;
    const { consumedPoints, msBeforeNext } = await this.#counter.penalty(id, debt + wanted);
    const left = Math.max(0, Math.min(window.left, this.limit - consumedPoints + wanted));
    const fetched = Math.min(wanted, left);
    window.tokens += fetched;
    window.left = left - fetched;
    const endsAt = performance.now() + msBeforeNext;
    window.endsAt = window.isShared ? Math.min(window.endsAt, endsAt) : endsAt;
    window.isShared = true;
  }
}
