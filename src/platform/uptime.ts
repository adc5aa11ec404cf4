import { uptime } from "node:os";

/** The maximum age of a reading. Milliseconds. */
const KEPT_MS = 250;
/**
 * Maximum difference between the wall clock and the monotonic clock over two readings, for them to count as equal.
 * Milliseconds.
 */
const SAME_MS = 10;

/**
 * The sources of time, in milliseconds. `monotonicMs` stands still while the machine is suspended. `uptimeMs` keeps
 * running and cannot be set, but on Linux each call reads a file, which takes 20 µs. `wallMs` keeps running and can be
 * set.
 */
interface Sources {
  monotonicMs(): number;
  wallMs(): number;
  uptimeMs(): number;
}

const SOURCES: Sources = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  uptimeMs: () => uptime() * 1_000,
};

/**
 * Makes a clock of the time since the machine's start, which also runs while the machine is suspended. It adds
 * monotonic time to the last reading of `uptimeMs`. It reads again when that reading is old, or when the wall clock has
 * advanced by a different amount than the monotonic clock. The latter happens after a suspension, or when the wall
 * clock was set. If both happen and cancel out, the suspension is detected only when the reading is old. In
 * milliseconds, accurate to 10.
 */
export function openUptimeClock({ monotonicMs, wallMs, uptimeMs }: Sources = SOURCES): () => number {
  const read = () => ({ monotonic: monotonicMs(), wall: wallMs(), uptime: uptimeMs() });
  let last = read();
  return () => {
    const passedMs = monotonicMs() - last.monotonic;
    if (passedMs <= KEPT_MS && Math.abs(wallMs() - last.wall - passedMs) <= SAME_MS) return last.uptime + passedMs;
    last = read();
    return last.uptime;
  };
}

/** The time since the machine's start, for the whole process. Milliseconds. */
export const uptimeMs = openUptimeClock();
