import pTimeout from "p-timeout";
import { uptimeMs } from "../uptime.ts";
import { UnusableDatabase } from "./schema.ts";

/** The clock has jumped if it has advanced by this much more than the time that has passed. Milliseconds. */
const JUMP_MS = 10_000;

/** Longest wait for the first reading. Milliseconds. */
const READY_MAX_MS = 2_000;

function notReached(): UnusableDatabase {
  return new UnusableDatabase("unavailable", "The database has not been reached yet.");
}

/** The last time that was read from the database. */
interface Reading {
  /** The database's clock. Milliseconds since 1970. */
  nowMs: number;
  /** The database's clock without the jumps ahead that this process has seen. Milliseconds. */
  steadyMs: number;
  /** When it was read, on a monotonic clock that also runs while the machine sleeps. Milliseconds. */
  readAtMs: number;
  /** How long the reading took, and so how old it may be. Milliseconds. */
  tookMs: number;
  /** When an operator last said that the clock is right. Milliseconds since 1970, or null. */
  trustedAtMs: number | null;
}

/**
 * The database's clock as this process sees it: the last time that it read, and the time that has passed since. The
 * host's clock plays no part.
 */
export class DatabaseClock {
  /** A monotonic clock that also runs while the machine sleeps. Milliseconds. */
  readonly monotonicMs: () => number;
  readonly #first = Promise.withResolvers<void>();
  #last: Reading | null = null;

  constructor(monotonicMs = uptimeMs) {
    this.monotonicMs = monotonicMs;
  }

  /** Resolves at the first reading. @throws UnusableDatabase if there is none for two seconds. */
  async ready(): Promise<void> {
    if (this.#last !== null) return;
    await pTimeout(this.#first.promise, { milliseconds: READY_MAX_MS, message: notReached() });
  }

  /**
   * Takes a time that was just read from the database. The first reading counts as right, and so does the first one
   * after an operator has trusted the clock. A frozen process may read an old answer: the next reading may then be
   * ahead by the time that this one took.
   */
  observe(now: Date, trustedAt: Date | null, askedAtMs = this.monotonicMs()): void {
    const readAtMs = this.monotonicMs();
    const nowMs = now.getTime();
    const trustedAtMs = trustedAt?.getTime() ?? null;
    const last = this.#last;
    const isTrusted = last === null || trustedAtMs !== last.trustedAtMs;
    const expectedMs = isTrusted ? nowMs : last.steadyMs + readAtMs - last.readAtMs;
    const steadyMs = nowMs - expectedMs > JUMP_MS + (last?.tookMs ?? 0) ? expectedMs : nowMs;
    this.#last = { nowMs, steadyMs, readAtMs, tookMs: readAtMs - askedAtMs, trustedAtMs };
    this.#first.resolve();
  }

  /** The database's time. @throws UnusableDatabase before the first reading. */
  now(): Date {
    return new Date(this.#reading.nowMs + this.#passedMs());
  }

  /** The database's time, without jumps ahead. @throws UnusableDatabase before the first reading. */
  steadyNow(): Date {
    return new Date(this.#reading.steadyMs + this.#passedMs());
  }

  /** How far the clock has jumped ahead. 0 if it has not. Milliseconds. */
  get aheadMs(): number {
    return this.#last === null ? 0 : this.#last.nowMs - this.#last.steadyMs;
  }

  get #reading(): Reading {
    if (this.#last === null) throw notReached();
    return this.#last;
  }

  #passedMs(): number {
    return this.monotonicMs() - this.#reading.readAtMs;
  }
}
