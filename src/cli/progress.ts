import type { WriteStream } from "node:tty";
import { showCount, showDuration } from "./figures.ts";

/** Time between two drawings of the line. Milliseconds. */
const REDRAW_MS = 100;
const USUAL_COLUMNS = 80;
/** Before this, a rate is a guess. Milliseconds. */
const RATE_AFTER_MS = 1_000;

/** Shows how far a long command is. */
export interface Progress {
  /** Says how much is done. */
  advance(done: number): void;
  /** Takes the line away. */
  end(): void;
}

/** Draws no line: for scripts and files. */
export const NO_PROGRESS: Progress = { advance: () => undefined, end: () => undefined };

/** Opens a line at the end of a terminal that tells what is done of what, how fast, and how long it will still take. */
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
      // A line that wraps could not be drawn over. Some terminals tell no width.
      terminal.write(`\r${line.slice(0, (terminal.columns || USUAL_COLUMNS) - 1)}\x1b[K`);
    },
    end() {
      if (Number.isFinite(drawnAt)) terminal.write("\r\x1b[K");
      drawnAt = Number.NEGATIVE_INFINITY;
    },
  };
}

/** The line: `Issuing 430,000 of 1,000,000 vouchers  43 %  9,512/s  1 min left`. The total grows with what was done beyond it. */
function describeProgress(verb: string, noun: string, done: number, total: number, elapsedMs: number): string {
  const all = Math.max(total, done, 1);
  const parts = [`${verb} ${showCount(done)} of ${showCount(all)} ${noun}`, `${Math.floor((100 * done) / all)} %`];
  if (elapsedMs >= RATE_AFTER_MS && done > 0) {
    parts.push(`${showCount(Math.round((done * 1_000) / elapsedMs))}/s`);
    parts.push(`${showDuration((elapsedMs * (all - done)) / done)} left`);
  }
  return parts.join("  ");
}
