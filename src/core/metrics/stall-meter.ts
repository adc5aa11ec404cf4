/** Time between two ticks, and maximum error of a measured stall. Costs less than 0.1 % of a core. Milliseconds. */
const TICK_MS = 10;

/** Measures how long this process could not run code, because its event loop was blocked or the process frozen. */
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
