/**
 * A seeded random generator. The same seed and the same calls give the same values. A fork depends only on the seed and
 * its name, so one actor's numbers never change another's.
 */
export class SeededRandom {
  readonly #seed: number;
  #state: number;

  constructor(seed: number) {
    this.#seed = seed >>> 0;
    this.#state = this.#seed;
  }

  fork(name: string): SeededRandom {
    // FNV-1a over the name, starting from the seed.
    let hash = (2_166_136_261 ^ this.#seed) >>> 0;
    for (const unit of name) hash = Math.imul(hash ^ (unit.codePointAt(0) ?? 0), 16_777_619) >>> 0;
    return new SeededRandom(hash);
  }

  /** A number of at least 0 and below 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** @throws Error if the list is empty. */
  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new Error("nothing to pick from");
    return items[Math.floor(this.next() * items.length)] as T;
  }

  /** Picks a name with a probability proportional to its weight. */
  weigh<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    const entries = Object.entries(weights) as [Name, number][];
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) {
      left -= weight;
      if (left < 0) return name;
    }
    return (entries.at(-1) as [Name, number])[0];
  }
}
