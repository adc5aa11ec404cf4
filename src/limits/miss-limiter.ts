import type { Counter } from "./shared-counts.ts";

/** A look-up that has its result, which is not told yet. */
interface Finished {
  missed: boolean;
  settle: (told: boolean) => void;
}

/** What this process knows of one caller's misses. */
interface Tally {
  /** On the monotonic clock, milliseconds. */
  endsAt: number;
  /** Misses of all processes in the window, as far as they are known here. */
  misses: number;
  /** Look-ups whose results wait while a miss before them is being counted; null: none is. */
  waiting: Finished[] | null;
}

/** What came of a look-up: its result, or that the caller has missed too often to be told any. */
export type Guarded<Result> = { told: true; result: Result } | { told: false; resetMs: number };

/**
 * Tells each caller of `limit` misses in a window, all processes together, and of nothing by way of such look-ups from then on. Nothing is
 * looked up for a caller who is known to be over the limit. What was under way before, in whatever number, is told in the order in
 * which it was finished, and each miss is counted for all processes before it is told; so a burst finds no gap, nobody waits for
 * a call of Redis but those who come behind a miss, and look-ups may be made many at a time.
 *
 * In a process that has not heard that the limit is reached, hits are told until its first miss, and that miss is not.
 */
export class MissLimiter {
  readonly #limit: number;
  readonly #count: Counter;
  /** Callers with a miss in a window that has not been seen to end. Callers are keys that exist. */
  readonly #tallies = new Map<string, Tally>();

  constructor(limit: number, count: Counter) {
    this.#limit = limit;
    this.#count = count;
  }

  /** Runs a look-up, unless the caller has missed too often. One that rejects counts as neither hit nor miss. */
  async guard<Result>(
    id: string,
    lookUp: () => Promise<Result>,
    isMiss: (result: Result) => boolean,
  ): Promise<Guarded<Result>> {
    if (this.#isOver(this.#tallies.get(id))) return this.#refusal(id);
    const result = await lookUp();
    return (await this.#settle(id, isMiss(result))) ? { told: true, result } : this.#refusal(id);
  }

  #isOver(tally: Tally | undefined): boolean {
    return tally !== undefined && tally.misses >= this.#limit && tally.endsAt > performance.now();
  }

  #refusal(id: string): { told: false; resetMs: number } {
    const endsAt = this.#tallies.get(id)?.endsAt ?? 0;
    return { told: false, resetMs: Math.max(0, Math.floor(endsAt - performance.now())) };
  }

  /** Whether a result may be told. */
  #settle(id: string, missed: boolean): boolean | Promise<boolean> {
    let tally = this.#tallies.get(id);
    if (!missed && (tally === undefined || tally.waiting === null)) return !this.#isOver(tally);
    if (tally === undefined) {
      tally = { endsAt: 0, misses: 0, waiting: null };
      this.#tallies.set(id, tally);
    }
    const { waiting } = tally;
    const settled = new Promise<boolean>((settle) => {
      if (waiting !== null) waiting.push({ missed, settle });
      else void this.#countMisses(id, tally, { missed, settle });
    });
    return settled;
  }

  /** Counts misses until none waits, as many at a time as there are, and lets their results be told or not. */
  async #countMisses(id: string, tally: Tally, first: Finished): Promise<void> {
    let finished = [first];
    while (finished.length > 0) {
      tally.waiting = [];
      const missed = finished.filter((one) => one.missed).length;
      if (missed > 0) await this.#add(id, tally, missed);
      let misses = tally.misses - missed;
      for (const one of finished) {
        if (one.missed) misses += 1;
        one.settle(one.missed ? misses <= this.#limit : misses < this.#limit);
      }
      finished = tally.waiting;
    }
    tally.waiting = null;
    if (tally.endsAt <= performance.now()) this.#tallies.delete(id);
  }

  async #add(id: string, tally: Tally, missed: number): Promise<void> {
    const { total, leftMs } = await this.#count(id, missed);
    const now = performance.now();
    if (tally.endsAt <= now) {
      tally.misses = 0;
      tally.endsAt = now + leftMs;
    }
    // A count that began anew, as Redis came or went, gives nothing back.
    tally.misses = Math.max(total, tally.misses + missed);
  }
}
