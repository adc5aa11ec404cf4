import { existsSync, globSync, renameSync, writeFileSync } from "node:fs";
import pLimit from "p-limit";
import { installDebianPackages } from "../../../src/local/debian-packages.ts";

const LIBRARY = "/usr/lib/*/faketime/libfaketime.so.1";

/** Tries to install libfaketime from Debian's packages. Returns whether it is present, and prints a message if not. */
export function hasFakeTime(say = (line: string): void => void process.stderr.write(`${line}\n`)): boolean {
  const isThere = () => globSync(LIBRARY).length > 0;
  if (!isThere()) installDebianPackages("libfaketime", ["faketime"], say);
  if (!isThere()) say("SKIPPED: libfaketime cannot be installed; the database's clock is never stepped.");
  return isThere();
}

/** Tolerance for rounding, because the host's clock and the database's show whole milliseconds. Milliseconds. */
export const ROUNDING_MS = 2;

/** A larger change is a jump. Only a process that has not read the clock before accepts a jump. Milliseconds. */
const JUMP_MS = 10_000;
/**
 * Maximum error of the service's times during a jump, because a reading may have taken long, or `closed_until` may be
 * old. Milliseconds.
 */
const OFF_MAX_MS = 15_000;
/** By how much a process may decide ahead of its own time until it reads a clock that was set ahead. Milliseconds. */
const SLACK_MS = 1_000;
/**
 * Time after which every process has read a changed clock. Processes read it once a second, but may be frozen.
 * Milliseconds.
 */
const READ_WITHIN_MS = 15_000;
const DAY_MS = 86_400_000;

/** The times at which a clock ran ahead of the host's clock by an offset. */
type Span = Record<"offsetMs" | "fromMs" | "untilMs", number>;

/**
 * The clock of a Postgres server: the host's clock plus an offset that tests change. Converts times in the service's
 * records to times of the host's clock. Records follow no jump ahead, and no jump back by more than a day. They follow
 * a step ahead once their process has read the clock.
 */
export class SteppedClock {
  /** Does work while the clock does not step. For the start of a server, `pg_ctl` compares both clocks. */
  readonly steadily = pLimit(1);
  readonly #file: string | null;
  readonly #spans: Span[] = [{ offsetMs: 0, fromMs: Number.NEGATIVE_INFINITY, untilMs: Number.POSITIVE_INFINITY }];
  /** The last offset that was not a jump's. Milliseconds. */
  #steadyMs = 0;

  /** Without a file, the clock always shows the host's time. */
  constructor(file: string | null = null) {
    this.#file = file;
    if (file !== null && !existsSync(file)) writeFileSync(file, "+0");
  }

  /** Environment variables of the server's processes. Timers on the monotonic clock stay right. */
  get env(): Record<string, string> {
    if (this.#file === null) return {};
    return {
      LD_PRELOAD: globSync(LIBRARY)[0] as string,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
      FAKETIME_DISABLE_SHM: "1",
    };
  }

  get hasStepped(): boolean {
    return this.#spans.length > 1;
  }

  set(offsetMs: number): Promise<void> {
    return this.steadily(() => {
      if (this.#file === null) throw new Error("this clock cannot be stepped");
      const fromMs = Date.now();
      writeFileSync(`${this.#file}.next`, `${offsetMs < 0 ? "-" : "+"}${Math.abs(offsetMs) / 1_000}`);
      renameSync(`${this.#file}.next`, this.#file);
      const steadyMs = this.#steadyMs;
      if (Math.abs(offsetMs - steadyMs) <= JUMP_MS) this.#steadyMs = offsetMs;
      // A process that starts during such a jump uses the host's clock or `closed_until`.
      const isOff = offsetMs - steadyMs > JUMP_MS || steadyMs - offsetMs > DAY_MS;
      // Between `fromMs` and `setMs`, a reading shows the old or the new offset.
      const setMs = Date.now();
      const readMs = setMs + READ_WITHIN_MS;
      const isAhead = !isOff && offsetMs > Math.min(0, steadyMs);
      for (const span of this.#spans) span.untilMs = Math.min(span.untilMs, isAhead ? readMs : setMs);
      const show = (shownMs: number, untilMs: number) => this.#spans.push({ offsetMs: shownMs, fromMs, untilMs });
      if (isAhead) show(Math.min(offsetMs, Math.max(0, steadyMs) + SLACK_MS), readMs);
      const [least, most] = [Math.min(0, steadyMs) - OFF_MAX_MS, Math.max(0, steadyMs) + OFF_MAX_MS];
      for (const shownMs of isOff ? [most, least] : [offsetMs]) show(shownMs, Number.POSITIVE_INFINITY);
    });
  }

  /** Returns the host's time when this clock first showed `ms` or a later time. */
  first(ms: number): number {
    const spans = this.#spans.filter(({ offsetMs, untilMs }) => ms - offsetMs <= untilMs);
    return Math.min(...spans.map(({ offsetMs, fromMs }) => Math.max(fromMs, ms - offsetMs)));
  }

  /**
   * Returns the host's time when this clock last showed `ms` or an earlier time. If a process used `closed_until`
   * instead, the host's time is later.
   */
  last(ms: number): number {
    const spans = this.#spans.filter(({ offsetMs, fromMs }) => ms - offsetMs >= fromMs);
    return Math.max(...spans.map(({ offsetMs, untilMs }) => Math.min(untilMs, ms - offsetMs)));
  }

  /** Returns the latest time that this clock showed between two times of the host's clock. */
  latestShown(fromMs: number, untilMs: number): number {
    const shown = this.#spans.filter((span) => span.fromMs <= untilMs && span.untilMs >= fromMs);
    return Math.max(...shown.map((span) => Math.min(untilMs, span.untilMs) + span.offsetMs));
  }
}
