import type { Counter } from "./rate-limiter.ts";

/** The facts that this process knows about a caller's misses in the current window. */
interface Tally {
  /** The window's end on the monotonic clock. Milliseconds. */
  endsAt: number;
  /** Known misses, counted over all processes. */
  misses: number;
  /** Resolves with the number of misses when Redis has counted the latest miss. Null while no miss is being counted. */
  counting: Promise<number> | null;
}

/** The result of a look-up, or a refusal because the caller has too many misses. */
type Guarded<Result> = { allowed: true; result: Result } | { allowed: false; resetMs: number };

/**
 * Allows each caller `limit` misses (tries of codes that do not exist or belong to another organization) per window,
 * counted over all processes. A process that knows that a caller has reached the limit returns no results to that
 * caller until the window ends.
 *
 * Look-ups run concurrently. A miss is counted before its result is returned, and a hit waits until the misses that
 * finished before it are counted. So a burst cannot exceed the limit. A process learns that the limit is reached when
 * it counts a miss itself. Until then it returns hits.
 */
export class MissLimiter {
  readonly #limit: number;
  readonly #counter: Counter;
  /** Callers with a miss. At most one entry for each API key. */
  readonly #tallies = new Map<string, Tally>();

  constructor(limit: number, counter: Counter) {
    this.#limit = limit;
    this.#counter = counter;
  }

  /** Runs a look-up, unless the caller has too many misses. A look-up that rejects counts as neither hit nor miss. */
  async guard<Result>(
    id: string,
    lookUp: () => Promise<Result>,
    isMiss: (result: Result) => boolean,
  ): Promise<Guarded<Result>> {
    if (this.#known(id) >= this.#limit) return this.#refusal(id);
    const result = await lookUp();
    const allowed = isMiss(result)
      ? (await this.#countMiss(id)) <= this.#limit
      : ((await this.#tallies.get(id)?.counting) ?? this.#known(id)) < this.#limit;
    return allowed ? { allowed, result } : this.#refusal(id);
  }

  #known(id: string): number {
    const tally = this.#tallies.get(id);
    return tally !== undefined && tally.endsAt > performance.now() ? tally.misses : 0;
  }

  #refusal(id: string): { allowed: false; resetMs: number } {
    const endsAt = this.#tallies.get(id)?.endsAt ?? 0;
    return { allowed: false, resetMs: Math.max(0, Math.floor(endsAt - performance.now())) };
  }

  #countMiss(id: string): Promise<number> {
    const tally = this.#tallies.get(id) ?? { endsAt: 0, misses: 0, counting: null };
    this.#tallies.set(id, tally);
    // Redis answers calls in their order, so the counts arrive in order too.
    const counting = this.#counter.penalty(id).then(({ consumedPoints, msBeforeNext }) => {
      const now = performance.now();
      const before = tally.endsAt > now ? tally.misses : 0;
      if (before === 0) tally.endsAt = now + msBeforeNext;
      // Redis may count fewer misses than before, for example after it has lost its data. The number of known misses
      // must not fall.
      tally.misses = Math.max(consumedPoints, before + 1);
      if (tally.counting === counting) tally.counting = null;
      return tally.misses;
    });
    tally.counting = counting;
    return counting;
  }
}
