/**
 * Time between two ticks, and so the largest error of a measured stall. A hundred ticks a second cost less than 0.1 %
 * of a core. Milliseconds.
 */
const TICK_MS = 10;

/** Callers notice a stall that is longer than this. Milliseconds. */
export const STALL_MAX_MS = 100;
/**
 * A single stall can be a pause of the host. A second one within this time is a fault of the process. Milliseconds.
 */
export const STALLS_WITHIN_MS = 120_000;

/** Measures for how long this process could not work: something blocked its event loop, or the process was frozen. */
export class StallMeter {
  readonly #monotonicMs: () => number;
  readonly #timer: NodeJS.Timeout;
  #tickedAtMs: number;
  #longestMs = 0;
  /** The first and the last of long stalls that follow each other, on the monotonic clock. */
  #stalls: { firstAtMs: number; lastAtMs: number } | null = null;

  constructor(monotonicMs = () => performance.now()) {
    this.#monotonicMs = monotonicMs;
    this.#tickedAtMs = monotonicMs();
    this.#timer = setInterval(() => {
      const overdueMs = this.#overdueMs();
      this.#longestMs = Math.max(this.#longestMs, overdueMs);
      this.#tickedAtMs = this.#monotonicMs();
      if (overdueMs > STALL_MAX_MS) this.#noteStall(this.#tickedAtMs);
    }, TICK_MS).unref();
  }

  /** The longest stall since the last call. Milliseconds. */
  takeLongestMs(): number {
    const longestMs = Math.max(this.#longestMs, this.#overdueMs());
    this.#longestMs = 0;
    return longestMs;
  }

  /** The duration of the present series of long stalls. 0 if there has been none for a while. Milliseconds. */
  get stallingMs(): number {
    if (this.#stalls === null || this.#monotonicMs() - this.#stalls.lastAtMs > STALLS_WITHIN_MS) return 0;
    return this.#stalls.lastAtMs - this.#stalls.firstAtMs;
  }

  #noteStall(atMs: number): void {
    const before = this.#stalls;
    const follows = before !== null && atMs - before.lastAtMs <= STALLS_WITHIN_MS;
    this.#stalls = { firstAtMs: follows ? before.firstAtMs : atMs, lastAtMs: atMs };
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
  }

  /** How long the next tick has been due. Milliseconds. */
  #overdueMs(): number {
    return Math.max(0, this.#monotonicMs() - this.#tickedAtMs - TICK_MS);
  }
}
