import type { WriteStream } from "node:tty";
import { formatCount, formatDuration } from "./format.ts";

/** Time between two updates of the line. Milliseconds. */
const REDRAW_MS = 100;
const DEFAULT_COLUMNS = 80;
/** Time before the rate is shown, because it is too inaccurate at first. Milliseconds. */
const RATE_AFTER_MS = 1_000;

/** The progress line of a long command. */
export interface Progress {
  /** Reports how many items are done. */
  advance(done: number): void;
  /** Removes the line. */
  end(): void;
}

export const NO_PROGRESS: Progress = { advance: () => undefined, end: () => undefined };

/** Opens a line on a terminal that shows items done, rate and remaining time. */
export function openProgress(
  terminal: Pick<WriteStream, "write" | "columns">,
  verb: string,
  noun: string,
  total: number,
  now: () => number = () => performance.now(),
): Progress {
  const startedAt = now();
  let drawnAt = Number.NEGATIVE_INFINITY;
  return {
    advance(done) {
      const at = now();
      if (at - drawnAt < REDRAW_MS) return;
      drawnAt = at;
      const line = describeProgress(verb, noun, done, total, at - startedAt);
      // Cuts the line, because a line that wraps could not be overwritten. Some terminals report no width, so there is
      // a default.
      terminal.write(`\r${line.slice(0, (terminal.columns || DEFAULT_COLUMNS) - 1)}\x1b[K`);
    },
    end() {
      if (Number.isFinite(drawnAt)) terminal.write("\r\x1b[K");
      drawnAt = Number.NEGATIVE_INFINITY;
    },
  };
}

/** The line: `Issuing 430,000 of 1,000,000 vouchers  43%  9,512/s  1 min left`. The total is at least `done`. */
function describeProgress(verb: string, noun: string, done: number, total: number, elapsedMs: number): string {
  const all = Math.max(total, done, 1);
  const parts = [`${verb} ${formatCount(done)} of ${formatCount(all)} ${noun}`, `${Math.floor((100 * done) / all)}%`];
  if (elapsedMs >= RATE_AFTER_MS && done > 0) {
    parts.push(`${formatCount(Math.round((done * 1_000) / elapsedMs))}/s`);
    parts.push(`${formatDuration((elapsedMs * (all - done)) / done)} left`);
  }
  return parts.join("  ");
}
