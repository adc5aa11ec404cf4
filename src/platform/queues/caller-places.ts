import { Shares } from "../batching/shares.ts";

/** Maximum number of callers that wait for jobs of a queue in one process. Further callers are refused at once. */
const WAITERS_MAX = 2_000;
/**
 * Callers of one owner that may wait in this process while another owner is present. The jobs of a shard run in order,
 * so the other owner's job waits for all of these: a quarter of a second for each API process.
 */
const OWNER_WAITERS_MAX = 250;
/** How long an owner is present after it last asked for a place. Milliseconds. */
const PRESENT_MS = 1_000;

/**
 * The places of a process's callers that wait for jobs of a queue. Owners share them. Null stands for callers without
 * an owner.
 */
export class CallerPlaces {
  readonly #shares = new Shares(WAITERS_MAX);
  /** The owner that last asked for a place, and the last other one. Times are milliseconds on the monotonic clock. */
  #last = { owner: "", at: Number.NEGATIVE_INFINITY };
  #other = this.#last;

  /**
   * Whether the owner may take one more place. Alone it may have three quarters of all; beside another, far fewer. The
   * owner then counts as present.
   */
  askForPlace(owner: string | null): boolean {
    if (owner === null) return this.#shares.used < WAITERS_MAX;
    const now = performance.now();
    if (owner !== this.#last.owner) this.#other = this.#last;
    this.#last = { owner, at: now };
    const isAlone = this.#other.at < now - PRESENT_MS;
    return this.#shares.hasRoom(owner) && (isAlone || this.#shares.heldBy(owner) < OWNER_WAITERS_MAX);
  }

  take(owner: string | null): void {
    this.#shares.take(owner ?? "");
  }

  release(owner: string | null): void {
    this.#shares.release(owner ?? "");
  }
}
