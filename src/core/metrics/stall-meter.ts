/**
 * Time between two ticks, which is also the maximum error of a measured stall. A hundred ticks a second cost less than
 * 0.1 % of a core. Milliseconds.
 */
const TICK_MS = 10;

/**
 * Measures how long this process could not run code, because something blocked its event loop or the process was
 * frozen.
 */
export class StallMeter {
  readonly #monotonicMs: () => number;
  readonly #timer: NodeJS.Timeout;
  #tickedAtMs: number;
  #longestMs = 0;

  constructor(monotonicMs = () => performance.now()) {
    this.#monotonicMs = monotonicMs;
    this.#tickedAtMs = monotonicMs();
    this.#timer = setInterval(() => {
      this.#longestMs = Math.max(this.#longestMs, this.#overdueMs());
      this.#tickedAtMs = this.#monotonicMs();
    }, TICK_MS).unref();
  }

  /** The longest stall since the last call. Milliseconds. */
  takeLongestMs(): number {
    const longestMs = Math.max(this.#longestMs, this.#overdueMs());
    this.#longestMs = 0;
    return longestMs;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
  }

  /** How long the next tick is overdue. Milliseconds. */
  #overdueMs(): number {
    return Math.max(0, this.#monotonicMs() - this.#tickedAtMs - TICK_MS);
  }
}
