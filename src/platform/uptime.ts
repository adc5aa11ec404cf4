import { uptime } from "node:os";

/** The maximum age of a reading. Milliseconds. */
const KEPT_MS = 250;
/**
 * Maximum difference between the advances of the wall clock and of the monotonic clock between two readings, for both
 * to count as equal. Milliseconds.
 */
const SAME_MS = 10;

/**
 * The sources of time, in milliseconds. `monotonicMs` stands still while the machine is suspended. `uptimeMs` keeps
 * running and cannot be set, but each call reads a file on Linux, which takes 20 µs. `wallMs` keeps running and can be
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
 * monotonic time to the last reading of `uptimeMs`. It reads `uptimeMs` again when that reading is old, or when the
 * wall clock and the monotonic clock have advanced differently, as after a suspension or after the wall clock was set.
 * If both have happened and cancel each other out, it notices the suspension only when the reading is old. In
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
