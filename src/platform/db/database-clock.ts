import pTimeout from "p-timeout";
import { uptimeMs } from "../uptime.ts";
import { orNull, timestamptz } from "./columns.ts";
import type { Queryable } from "./queryable.ts";
import { UnusableDatabase } from "./schema.ts";

// The rule of time: the database's clock decides, unless it has jumped. A decision uses the database's time, or the
// latest time that the process considers possible if that is earlier. Decisions use no time before `closed_until` (the
// closed time). So a jump never makes anything expire, end, be deleted, get a wrong date, or become valid again. See
// docs/design/database.md, "Time".

/** The clock has jumped if it moved this much more, or less, than the time between two readings. Milliseconds. */
const JUMP_MS = 10_000;
/** How much the database's clock may gain on the process's own clock between two readings. Milliseconds. */
const SLACK_MS = 1_000;
/**
 * Maximum lead of `closed_until` over the process's time: with a larger lead, the process decides nothing. Also the
 * maximum lead of the database's clock over the host's clock at the first reading: with a larger lead, the process uses
 * the host's clock. Milliseconds.
 */
const DISPUTED_MS = 86_400_000;

const isFar = (oneMs: number, otherMs: number) => Math.abs(oneMs - otherMs) > DISPUTED_MS;

/** Maximum wait for the first reading. Milliseconds. */
const READY_MAX_MS = 2_000;

function notReached(): UnusableDatabase {
  return new UnusableDatabase("unavailable", "The database has not been reached yet.");
}

/** The times that a server reports. */
export interface ServerTime {
  now: Date;
  /** When an operator last declared that the clock is right, or null. */
  trustedAt: Date | null;
  /** The time before which redemptions are refused. It only moves forward, and all processes see it. */
  closedUntil: Date;
}

interface Reading {
  /** The database's time as read, in milliseconds since 1970. */
  nowMs: number;
  /** The database's time without the jumps that this process has seen, in milliseconds since 1970. */
  rightMs: number;
  /** The time of the reading, on a monotonic clock that also runs while the machine sleeps. Milliseconds. */
  readAtMs: number;
  /** Duration of the reading. Its result may be this old. Milliseconds. */
  tookMs: number;
  /** When an operator last declared that the clock is right. Milliseconds since 1970, or null. */
  trustedAtMs: number | null;
}

/**
 * The database's clock as this process sees it: the last reading plus the time that has passed since. The host's clock
 * only limits the first reading.
 */
export class DatabaseClock {
  /** A monotonic clock that also runs while the machine sleeps. Milliseconds. */
  readonly monotonicMs: () => number;
  readonly #hostMs: () => number;
  readonly #first = Promise.withResolvers<void>();
  #last: Reading | null = null;

  constructor(monotonicMs = uptimeMs, hostMs = () => Date.now()) {
    this.monotonicMs = monotonicMs;
    this.#hostMs = hostMs;
  }

  /** Resolves at the first reading. @throws UnusableDatabase if there is no reading for two seconds. */
  async ready(): Promise<void> {
    if (this.#last !== null) return;
    await pTimeout(this.#first.promise, { milliseconds: READY_MAX_MS, message: notReached() });
  }

  /**
   * Takes a time that was just read from the database. Trusts the first reading, unless it is far ahead of the host's
   * clock, and the first reading after an operator has declared that the clock is right. A process that was frozen may
   * read an old answer, so a reading may be wrong by the duration of the previous reading.
   */
  observe({ now, trustedAt, closedUntil }: ServerTime, askedAtMs = this.monotonicMs()): void {
    const readAtMs = this.monotonicMs();
    const nowMs = now.getTime();
    const trustedAtMs = trustedAt?.getTime() ?? null;
    const last = this.#last;
    let rightMs = nowMs;
    if (last === null) rightMs = this.#firstTime(nowMs, closedUntil.getTime());
    else if (trustedAtMs === last.trustedAtMs) {
      const expectedMs = last.rightMs + readAtMs - last.readAtMs;
      const isJump = Math.abs(nowMs - expectedMs) > JUMP_MS + last.tookMs;
      // If the process started while the clock was wrong, the correction looks like a jump. The host's clock shows
      // which of the two times is right.
      const isCorrection = isFar(expectedMs, this.#hostMs()) && !isFar(nowMs, this.#hostMs());
      if (isJump && !isCorrection) rightMs = expectedMs;
    }
    this.#last = { nowMs, rightMs, readAtMs, tookMs: readAtMs - askedAtMs, trustedAtMs };
    this.#first.resolve();
  }

  /** The first time to use. If it is over a day before the host's time, {@link timeOf} refuses every decision. */
  #firstTime(nowMs: number, closedMs: number): number {
    const hostMs = this.#hostMs();
    if (hostMs - nowMs > DISPUTED_MS) return nowMs;
    const atMs = Math.max(nowMs, closedMs);
    return atMs - hostMs > DISPUTED_MS ? hostMs : atMs;
  }

  /** The database's time, without jumps ahead. @throws UnusableDatabase before the first reading. */
  steadyNow(): Date {
    const { nowMs, rightMs, readAtMs } = this.#reading;
    return new Date(Math.min(nowMs, rightMs) + this.monotonicMs() - readAtMs);
  }

  /** The latest time that the database's clock could show now if it has not jumped. @throws UnusableDatabase */
  latestNow(): Date {
    const { rightMs, readAtMs, tookMs } = this.#reading;
    return new Date(rightMs + this.monotonicMs() - readAtMs + tookMs + SLACK_MS);
  }

  /**
   * The time for decisions about a read. `now` is the database's time at the read. A final decision also passes
   * `closedUntil`, before which redemptions are refused, and gets no earlier time.
   * @throws UnusableDatabase if `closedUntil` or the host's clock is days ahead of what this process has seen.
   */
  timeOf(now: Date, closedUntil: Date | null = null): Date {
    const latestMs = this.latestNow().getTime();
    const [nowMs, closedMs] = [now.getTime(), closedUntil?.getTime() ?? 0];
    if (this.#hostMs() - latestMs > DISPUTED_MS)
      throw new UnusableDatabase("unavailable", "The database's clock is over a day behind the clock of this host.");
    if (closedMs - latestMs > DISPUTED_MS) {
      const sentence = "The database's clock was ahead by days. `voucherctl db trust-clock` says that it is right now.";
      throw new UnusableDatabase("unavailable", sentence);
    }
    // If the database's clock was set back by days, the process continues with its own time.
    const { rightMs, readAtMs } = this.#reading;
    const ownMs = rightMs + this.monotonicMs() - readAtMs;
    const decidesMs = ownMs - nowMs > DISPUTED_MS ? Math.floor(ownMs) : Math.min(nowMs, latestMs);
    return new Date(Math.max(closedMs, decidesMs));
  }

  /** How far the clock has jumped ahead. 0 if it has not. Milliseconds. */
  get aheadMs(): number {
    return this.#last === null ? 0 : Math.max(0, this.#last.nowMs - this.#last.rightMs);
  }

  /** Whether the database's time was read. */
  get isKnown(): boolean {
    return this.#last !== null;
  }

  get #reading(): Reading {
    if (this.#last === null) throw notReached();
    return this.#last;
  }
}

/** The clock for the times that a pool or a connection reads. Commands of `voucherctl` use no such clock. */
const CLOCKS = new WeakMap<Queryable, DatabaseClock>();

/** Makes a clock check the times that a pool or a connection reads. */
export function judgeTimes(db: Queryable, clock: DatabaseClock): void {
  CLOCKS.set(db, clock);
}

/** {@link DatabaseClock.timeOf} for a pool or a connection. */
export function timeOf(db: Queryable, now: Date, closedUntil: Date | null = null): Date {
  const clock = CLOCKS.get(db);
  if (clock !== undefined) return clock.timeOf(now, closedUntil);
  return closedUntil !== null && closedUntil > now ? closedUntil : now;
}

/** {@link DatabaseClock.latestNow} for a pool or a connection. Null, for no limit, without a clock or a reading. */
export function latestTime(db: Queryable): Date | null {
  const clock = CLOCKS.get(db);
  return clock?.isKnown ? clock.latestNow() : null;
}

/** The parameter of a statement for {@link latestTime}. */
export const LATEST = { latest: orNull(timestamptz) };

/** Adds {@link latestTime} to the values of a statement that has the parameter {@link LATEST}. */
export function withLatest<Given extends { latest: Date | null }, Result>(
  run: (db: Queryable, values: Given) => Promise<Result>,
): (db: Queryable, values: Omit<Given, "latest">) => Promise<Result> {
  return (db, values) => run(db, { ...values, latest: latestTime(db) } as Given);
}
