import type { Counter } from "./shared-counts.ts";

/** Length of a window. Milliseconds. */
const WINDOW_MS = 1_000;
/**
 * A process fetches a caller's tokens in chunks of a twentieth of the limit. So all processes together call Redis about
 * 20 times a second for a caller, and leave few tokens unused.
 */
const CHUNKS = 20;
/** Maximum number of callers in a generation. Two generations are kept, so at most ten thousand callers. */
const GENERATION_MAX = 5_000;
/**
 * Time until the next generation begins: two windows, because a new window depends on how busy the previous one was.
 * Milliseconds.
 */
const GENERATION_MS = 2 * WINDOW_MS;

/** Whether a call is allowed, and the caller's remaining limit. */
export interface Verdict {
  allowed: boolean;
  /** Calls that all processes together still allow in this window, as far as this one knows. */
  remaining: number;
  /** Time to the window's end, in milliseconds. */
  resetMs: number;
}

/** What this process knows about a caller's current window. */
interface Window {
  /** The window's end on the monotonic clock. Milliseconds. */
  endsAt: number;
  /** Calls that this process may allow without a call to Redis. */
  tokens: number;
  /**
   * Tokens left in the shared count, as last read. Never rises within a window, even if the shared count restarts from
   * zero.
   */
  left: number;
  /** Whether `endsAt` comes from the shared count. Until the first fetch, it comes from this process's own clock. */
  shared: boolean;
  /** Tokens that the window began with on credit. The next fetch takes them from the shared count. */
  debt: number;
  /** Calls that wait for tokens. */
  waiting: number;
  fetching: Promise<void> | null;
}

/**
 * Allows each caller `limit` calls a second over all processes. Fetches tokens from the shared count before they run
 * out, and starts a window on credit for a caller that left more than half of its limit unused in the previous window.
 * A call rarely waits for Redis.
 *
 * Windows begin with a caller's first call. N processes together allow `limit` calls, plus or minus N times a
 * thirteenth of it: a process leaves at most one and a half chunks unused, and gives at most one chunk on credit.
 */
export class RateLimiter {
  /** The limit's name in responses. */
  readonly name: string;
  /** Calls a second. */
  readonly limit: number;
  readonly #count: Counter;
  readonly #chunk: number;
  readonly #credit: number;
  /**
   * The windows of the current and the previous generation, by caller. A caller that calls again moves to the current
   * one.
   */
  #recent = new Map<string, Window>();
  #older = new Map<string, Window>();
  /** When the next generation begins, on the monotonic clock. Milliseconds. */
  #nextGenerationAt = 0;

  constructor(name: string, limit: number, count: Counter) {
    this.name = name;
    this.limit = limit;
    this.#count = count;
    this.#chunk = Math.ceil(limit / CHUNKS);
    this.#credit = Math.floor(limit / CHUNKS);
  }

  /** Number of remembered callers. */
  get size(): number {
    return this.#recent.size + this.#older.size;
  }

  /** Counts one call of a caller and decides whether it is allowed. */
  take(id: string): Verdict | Promise<Verdict> {
    const now = performance.now();
    const window = this.#windowOf(id, now);
    if (window.tokens > 0) return this.#consumeToken(id, window, now);
    if (window.left === 0) return refusal(window, now);
    window.waiting += 1;
    return this.#fetchOnce(id, window).then(() => {
      window.waiting -= 1;
      return this.take(id);
    });
  }

  #consumeToken(id: string, window: Window, now: number): Verdict {
    window.tokens -= 1;
    if (window.tokens < Math.floor(this.#chunk / 2) && window.left > 0) void this.#fetchOnce(id, window);
    return { allowed: true, remaining: window.left + window.tokens, resetMs: Math.floor(window.endsAt - now) };
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
    const { total, leftMs } = await this.#count(id, debt + wanted);
    const left = Math.max(0, Math.min(window.left, this.limit - total + wanted));
    window.tokens += Math.min(wanted, left);
    window.left = left - Math.min(wanted, left);
    const endsAt = performance.now() + leftMs;
    window.endsAt = window.shared ? Math.min(window.endsAt, endsAt) : endsAt;
    window.shared = true;
  }

  #windowOf(id: string, now: number): Window {
    const recent = this.#recent.get(id);
    if (recent !== undefined && recent.endsAt > now) return recent;
    const last = recent ?? this.#older.get(id);
    const window = last !== undefined && last.endsAt > now ? last : this.#openWindow(last, now);
    if (recent === undefined) this.#makeRoom(id, now);
    this.#recent.set(id, window);
    return window;
  }

  #openWindow(last: Window | undefined, now: number): Window {
    const isBusy = last !== undefined && last.endsAt > now - WINDOW_MS && last.left <= this.limit / 2;
    const credit = isBusy ? 0 : this.#credit;
    const tokens = { tokens: credit, debt: credit, left: this.limit - credit };
    return { ...tokens, endsAt: now + WINDOW_MS, shared: false, waiting: 0, fetching: null };
  }

  /**
   * Makes room for a caller in the current generation. If that is full or its time is over, begins a new one and drops
   * the previous one.
   */
  #makeRoom(id: string, now: number): void {
    this.#older.delete(id);
    if (this.#recent.size < GENERATION_MAX && now < this.#nextGenerationAt) return;
    this.#older = this.#recent;
    this.#recent = new Map();
    this.#nextGenerationAt = now + GENERATION_MS;
  }
}

function refusal(window: Window, now: number): Verdict {
  return { allowed: false, remaining: 0, resetMs: Math.floor(window.endsAt - now) };
}
