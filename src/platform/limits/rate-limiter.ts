import { RateLimiterMemory, RateLimiterRedis } from "rate-limiter-flexible";
import type { RedisClient } from "../redis/connections.ts";

/** Length of a window. Milliseconds. */
const WINDOW_MS = 1_000;
/**
 * A process fetches a caller's tokens from Redis in chunks of a twentieth of the limit. One round trip per call would
 * cost more CPU time than everything else that a look-up needs for limits and authentication.
 */
const CHUNKS = 20;
/**
 * Maximum number of callers of which this process keeps a {@link Window}. The calls of each caller are counted in Redis
 * or, without Redis, in memory.
 */
const CALLERS_MAX = 10_000;

/** Counts in Redis for all processes. Never rejects: while Redis does not answer, the process counts on its own. */
export type Counter = Pick<RateLimiterRedis, "penalty">;

/** Opens the counts under the keys `limit:<name>:<id>`. An id's window begins with its first count. */
export function openCounter(redis: RedisClient, name: string, windowSeconds: number): Counter {
  // Uses `penalty`, which only counts, because the limiters themselves compare the count with their limits.
  const options = { keyPrefix: `limit:${name}`, points: Number.MAX_SAFE_INTEGER, duration: windowSeconds };
  const insuranceLimiter = new RateLimiterMemory(options);
  return new RateLimiterRedis({ ...options, storeClient: redis, rejectIfRedisNotReady: true, insuranceLimiter });
}

/** Whether a call is allowed, and how many calls the caller has left. */
export interface Allowance {
  allowed: boolean;
  /** The number of further calls that all processes together allow in this window, as far as this process knows. */
  remaining: number;
  /** Time to the window's end, in milliseconds. */
  resetMs: number;
}

/** The facts that this process knows about a caller's current window. */
interface Window {
  /** The window's end on the monotonic clock. Milliseconds. */
  endsAt: number;
  /**
   * The number of calls that this process may allow without asking Redis. A window begins with some tokens, and the
   * first fetch adds them to the count in Redis.
   */
  tokens: number;
  /** Tokens that were left at the last read of the count. Never rises in a window, even if Redis loses the count. */
  left: number;
  /** Tokens used but not yet counted in Redis. */
  debt: number;
  /**
   * Whether `endsAt` is the end of the count in Redis, which all processes share. Before the first fetch, `endsAt` is
   * an estimate of this process.
   */
  isShared: boolean;
  /** The number of calls that wait for tokens. */
  waiting: number;
  fetching: Promise<void> | null;
}

/**
 * Allows each caller `limit` calls a second, counted over all processes. A window begins with a caller's first call. It
 * begins with a chunk of tokens, which are counted in Redis later, and a process fetches further tokens before they run
 * out. So a call rarely waits for Redis, and an occasional caller needs no round trip. N processes together allow
 * `limit` calls, plus or minus N thirteenths of the limit: each process leaves at most one and a half chunks unused,
 * and allows at most one chunk too many.
 */
export class RateLimiter {
  /** The limit's name in responses. */
  readonly name: string;
  /** Calls per second. */
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

  /** The number of remembered callers. */
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
    // A window of a limit below CHUNKS begins with 0 tokens, so the limit is exact.
    const tokens = Math.floor(this.limit / CHUNKS);
    const endsAt = now + WINDOW_MS;
    const left = this.limit - tokens;
    const window = { endsAt, tokens, left, debt: tokens, isShared: false, waiting: 0, fetching: null };
    this.#windows.set(id, window);
    return window;
  }

  /** Fetches tokens, or waits for a running fetch. */
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
