import type { Logger } from "pino";
import { uptimeMs } from "./uptime.ts";

/** How often the process reads its clocks. Milliseconds. */
const TICK_MS = 250;
/** A timer that is this late shows a pause: the process was frozen, suspended, or without CPU time. Milliseconds. */
const PAUSE_MS = 2_000;
/**
 * Number of consecutive ticks on time after which requests count as current again. By then, the process has read
 * everything that waited in its sockets.
 */
const CALM_TICKS = 4;
/** Maximum time from a request's last byte to the first read for it. Milliseconds. */
const FIRST_READ_MS = 5_000;

/**
 * Clocks in milliseconds that cannot be set. While a machine is suspended, the monotonic clock stops, and the time
 * since the machine's start continues.
 */
interface Clocks {
  monotonicMs(): number;
  uptimeMs(): number;
}

const CLOCKS: Clocks = { monotonicMs: () => performance.now(), uptimeMs };

/**
 * Detects pauses of the process. A request that waited in its socket during a pause was sent long ago. Its sender may
 * have given up, or another process may have answered a repeat differently.
 */
export class PauseWatch {
  readonly #log: Pick<Logger, "warn">;
  readonly #clocks: Clocks;
  readonly #timer: NodeJS.Timeout;
  #tickedAt: { monotonic: number; uptime: number };
  /**
   * Requests received from this time on did not wait during a pause. Infinity from a pause until enough ticks were on
   * time.
   */
  #currentSince = Number.NEGATIVE_INFINITY;
  #calmTicks = 0;

  constructor(log: Pick<Logger, "warn">, clocks: Clocks = CLOCKS) {
    this.#log = log;
    this.#clocks = clocks;
    this.#tickedAt = this.#now();
    this.#timer = setInterval(() => this.tick(), TICK_MS).unref();
  }

  /**
   * Whether a request may be much older than the process can tell.
   * @param receivedAtMs when its last byte was read, on the monotonic clock.
   */
  isOutdated(receivedAtMs: number): boolean {
    this.#notePause(this.#latenessMs());
    return receivedAtMs < this.#currentSince || this.#clocks.monotonicMs() - receivedAtMs > FIRST_READ_MS;
  }

  /** Called by a timer. */
  tick(): void {
    const latenessMs = this.#latenessMs();
    this.#tickedAt = this.#now();
    this.#notePause(latenessMs);
    this.#calmTicks = latenessMs < TICK_MS ? this.#calmTicks + 1 : 0;
    if (this.#currentSince === Number.POSITIVE_INFINITY && this.#calmTicks >= CALM_TICKS)
      this.#currentSince = this.#tickedAt.monotonic;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
  }

  #notePause(latenessMs: number): void {
    if (latenessMs <= PAUSE_MS || this.#currentSince === Number.POSITIVE_INFINITY) return;
    this.#currentSince = Number.POSITIVE_INFINITY;
    this.#log.warn({ latenessMs }, "this process was frozen; redeems that it has received get redeem_unknown");
  }

  #now() {
    return { monotonic: this.#clocks.monotonicMs(), uptime: this.#clocks.uptimeMs() };
  }

  #latenessMs(): number {
    const now = this.#now();
    return Math.max(now.monotonic - this.#tickedAt.monotonic, now.uptime - this.#tickedAt.uptime) - TICK_MS;
  }
}
