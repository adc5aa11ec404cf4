import { uptime } from "node:os";

/** Maximum age of the last reading of `uptimeMs`. Milliseconds. */
const KEPT_MS = 250;
/**
 * The last reading is reused only if the wall clock and the monotonic clock have advanced by the same time since, up to
 * this difference. Milliseconds.
 */
const SAME_MS = 10;

/**
 * The sources of time, in milliseconds. `monotonicMs` stops while the machine is suspended. `uptimeMs` keeps running
 * and cannot be set, but each call reads a file on Linux, which takes 20 µs. `wallMs` keeps running and can be set.
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
 * Makes a clock of the time since the machine's start, including time in which the machine is suspended. Adds monotonic
 * time to the last reading of `uptimeMs`. Reads `uptimeMs` again when that reading is old, or when the wall clock and
 * the monotonic clock have advanced differently: after a suspension, or after someone set the wall clock. If a
 * suspension and a new setting cancel each other out, the clock notices the suspension only when the reading is old.
 * Milliseconds, accurate to 10.
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

/** Returns the milliseconds since the machine started. All modules of the process share this clock. */
export const uptimeMs = openUptimeClock();
