import type { Counter } from "./shared-counts.ts";

/** A finished look-up whose result has not been returned yet. */
interface Finished {
  missed: boolean;
  decide: (allowed: boolean) => void;
}

/** What this process knows about a caller's misses. */
interface Tally {
  /** The window's end on the monotonic clock. Milliseconds. */
  endsAt: number;
  /** Known misses of all processes in the current window. */
  misses: number;
  /** Look-ups that finished while an earlier miss is being counted. Null when no miss is being counted. */
  waiting: Finished[] | null;
}

/** The result of a look-up, or a refusal because the caller has missed too often. */
type Guarded<Result> = { allowed: true; result: Result } | { allowed: false; resetMs: number };

/**
 * Lets each caller see `limit` misses per window, counted over all processes. After that, a process that knows of it
 * returns no results until the window ends.
 *
 * Look-ups run concurrently. Results are returned in the order in which they finish, and each miss is counted in Redis
 * before that, so a burst cannot exceed the limit. A process learns only from a miss of its own that the limit is
 * reached. Until then it returns hits.
 */
export class MissLimiter {
  readonly #limit: number;
  readonly #count: Counter;
  /** Callers with a miss, until a later miss finds their window over. At most one entry for each API key. */
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
    return (await this.#mayReturn(id, isMiss(result))) ? { allowed: true, result } : this.#refusal(id);
  }

  #isOver(tally: Tally | undefined): boolean {
    return tally !== undefined && tally.misses >= this.#limit && tally.endsAt > performance.now();
  }

  #refusal(id: string): { allowed: false; resetMs: number } {
    const endsAt = this.#tallies.get(id)?.endsAt ?? 0;
    return { allowed: false, resetMs: Math.max(0, Math.floor(endsAt - performance.now())) };
  }

  /** Whether a result may be returned to the caller. */
  #mayReturn(id: string, missed: boolean): boolean | Promise<boolean> {
    const known = this.#tallies.get(id);
    if (!missed && (known === undefined || known.waiting === null)) return !this.#isOver(known);
    const tally = known ?? { endsAt: 0, misses: 0, waiting: null };
    this.#tallies.set(id, tally);
    return new Promise<boolean>((decide) => {
      if (tally.waiting !== null) tally.waiting.push({ missed, decide });
      else void this.#countMisses(id, tally, { missed, decide });
    });
  }

  /** Decides on finished look-ups until none waits. Each round first counts the misses among all that wait. */
  async #countMisses(id: string, tally: Tally, first: Finished): Promise<void> {
    let finished = [first];
    while (finished.length > 0) {
      tally.waiting = [];
      const missed = finished.filter((one) => one.missed).length;
      if (missed > 0) await this.#add(id, tally, missed);
      let misses = tally.misses - missed;
      for (const one of finished) {
        if (one.missed) misses += 1;
        one.decide(one.missed ? misses <= this.#limit : misses < this.#limit);
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
    // The shared count can be lower, for example after Redis has lost its data. The known misses must not fall.
    tally.misses = Math.max(total, tally.misses + missed);
  }
}
