import type { Count, Counter } from "./shared-counts.ts";

/** Length of a window. Milliseconds. */
const WINDOW_MS = 1_000;
/**
 * A process takes tokens from the shared count a twentieth of the limit at a time: at the full rate that is 20 calls of Redis a
 * second, and what processes hold unspent stays small.
 */
const CHUNKS = 20;
/** Callers that a generation holds. Two are kept, so that ten thousand callers are remembered at most. */
const GENERATION_MAX = 5_000;
/** How long a generation gathers callers: a window, and as long again in which it tells how busy the last one was. Milliseconds. */
const GENERATION_MS = 2 * WINDOW_MS;

/** Whether a call may go on, and how the caller stands. */
export interface Verdict {
  allowed: boolean;
  /** What all processes together will still let through in this window, as far as this one knows. */
  remaining: number;
  /** Time to the window's end, in milliseconds. */
  resetMs: number;
}

/** What this process knows of one caller's current window. */
interface Window {
  /** On the monotonic clock, milliseconds. */
  endsAt: number;
  /** Calls that this process may let through without asking. */
  tokens: number;
  /** What is left to be taken by all processes, as last heard. It only falls: a count that began anew gives nothing back. */
  left: number;
  /** Whether the window is the one that is shared; until it was first asked for, it is this process's own. */
  shared: boolean;
  /** Tokens that were given before anybody was asked; the next asking pays for them. */
  debt: number;
  /** Calls that wait for tokens. */
  waiting: number;
  asking: Promise<void> | null;
}

/**
 * Lets each caller through `limit` times a second, all processes together. It waits for the shared count only when a caller's
 * tokens are used up before the next ones are here: they are asked for ahead of need, and a caller that left more than half of
 * the last second's limit unused begins the next second on credit.
 *
 * Windows are fixed, and begin with a caller's first call. With N processes a window lets through `limit` calls, give or take N times a
 * thirteenth of it: more when processes give credit at the same time, less when they hold tokens that the caller does not come for.
 */
export class RateLimiter {
  /** What answers call this limit. */
  readonly name: string;
  /** Calls a second. */
  readonly limit: number;
  readonly #count: Counter;
  readonly #chunk: number;
  readonly #credit: number;
  /** With fewer tokens than this, the next ones are asked for. */
  readonly #askBelow: number;
  /** Callers who called since the last turn of generations, and those who called in the one before. Who calls again moves up. */
  #recent = new Map<string, Window>();
  #older = new Map<string, Window>();
  /** On the monotonic clock, milliseconds. */
  #turnAt = 0;

  constructor(name: string, limit: number, count: Counter) {
    this.name = name;
    this.limit = limit;
    this.#count = count;
    this.#chunk = Math.ceil(limit / CHUNKS);
    this.#credit = Math.floor(limit / CHUNKS);
    this.#askBelow = Math.floor(this.#chunk / 2);
  }

  /** Callers that are remembered at the moment. */
  get size(): number {
    return this.#recent.size + this.#older.size;
  }

  /** Takes one call from a caller's limit. */
  take(id: string): Verdict | Promise<Verdict> {
    const now = performance.now();
    const window = this.#windowOf(id, now);
    if (window.tokens > 0) return this.#spend(id, window, now);
    if (window.left > 0) return this.#takeLater(id);
    return refusal(window, now);
  }

  /** The refusal that a caller would get now, or null: for work that is not worth doing for a caller who is over the limit. */
  findRefusal(id: string): Verdict | null {
    const now = performance.now();
    const window = this.#recent.get(id) ?? this.#older.get(id);
    if (window === undefined || window.endsAt <= now || window.tokens > 0 || window.left > 0) return null;
    return refusal(window, now);
  }

  #spend(id: string, window: Window, now: number): Verdict {
    window.tokens -= 1;
    if (window.tokens < this.#askBelow && window.left > 0) void this.#ask(id, window);
    return { allowed: true, remaining: window.left + window.tokens, resetMs: Math.floor(window.endsAt - now) };
  }

  async #takeLater(id: string): Promise<Verdict> {
    for (;;) {
      const now = performance.now();
      const window = this.#windowOf(id, now);
      if (window.tokens > 0) return this.#spend(id, window, now);
      if (window.left === 0) return refusal(window, now);
      window.waiting += 1;
      await this.#ask(id, window);
      window.waiting -= 1;
    }
  }

  /** Gets tokens; who asks while somebody does shares what comes. */
  #ask(id: string, window: Window): Promise<void> {
    window.asking ??= this.#fetch(id, window).finally(() => {
      window.asking = null;
    });
    return window.asking;
  }

  async #fetch(id: string, window: Window): Promise<void> {
    const { debt } = window;
    const wanted = Math.max(this.#chunk, window.waiting);
    window.debt = 0;
    const { total, leftMs }: Count = await this.#count(id, debt + wanted);
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
    return {
      endsAt: now + WINDOW_MS,
      tokens: credit,
      left: this.limit - credit,
      shared: false,
      debt: credit,
      waiting: 0,
      asking: null,
    };
  }

  /** Makes room for one more recent caller. When there is none, or the time has come, the older ones are forgotten. */
  #makeRoom(id: string, now: number): void {
    this.#older.delete(id);
    if (this.#recent.size < GENERATION_MAX && now < this.#turnAt) return;
    this.#older = this.#recent;
    this.#recent = new Map();
    this.#turnAt = now + GENERATION_MS;
  }
}

function refusal(window: Window, now: number): Verdict {
  return { allowed: false, remaining: 0, resetMs: Math.floor(window.endsAt - now) };
}
