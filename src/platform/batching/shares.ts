/**
 * Counts the units of a limited resource that each owner holds. An owner may take another unit while it holds less than
 * `heldPerFree` times as many as are free. By default, a single owner gets at most three quarters, and each new owner
 * still finds some.
 */
export class Shares {
  readonly #max: number;
  readonly #heldPerFree: number;
  readonly #held = new Map<string, number>();
  #used = 0;

  constructor(max: number, heldPerFree = 3) {
    this.#max = max;
    this.#heldPerFree = heldPerFree;
  }

  get used(): number {
    return this.#used;
  }

  get isFull(): boolean {
    return this.#used >= this.#max;
  }

  heldBy(owner: string): number {
    return this.#held.get(owner) ?? 0;
  }

  /** Whether the owner may take another unit. */
  hasRoom(owner: string): boolean {
    return this.heldBy(owner) < this.#heldPerFree * (this.#max - this.#used);
  }

  /** Takes a unit for the owner, even if none is free. Every unit must be released exactly once. */
  take(owner: string): void {
    this.#used += 1;
    this.#held.set(owner, this.heldBy(owner) + 1);
  }

  release(owner: string): void {
    this.#used -= 1;
    const held = this.heldBy(owner) - 1;
    if (held > 0) this.#held.set(owner, held);
    else this.#held.delete(owner);
  }
}

/**
 * Splits items into two lists: the `max` items that come first when owners take turns, and the rest. Both lists keep
 * the order of the items. The owner of the first item has the first turn.
 */
export function splitInTurns<Item extends { owner: string }>(items: readonly Item[], max: number): [Item[], Item[]] {
  const seen = new Map<string, number>();
  const rounds = items.map(({ owner }) => {
    const round = seen.get(owner) ?? 0;
    seen.set(owner, round + 1);
    return round;
  });
  const inRound: number[] = [];
  for (const round of rounds) inRound[round] = (inRound[round] ?? 0) + 1;
  let lastRound = 0;
  let left = max;
  for (; left > (inRound[lastRound] ?? left); lastRound += 1) left -= inRound[lastRound] ?? 0;
  const taken: Item[] = [];
  const others: Item[] = [];
  for (const [index, item] of items.entries()) {
    const round = rounds[index] as number;
    const isTaken = round < lastRound || (round === lastRound && left-- > 0);
    (isTaken ? taken : others).push(item);
  }
  return [taken, others];
}

/** Splits a list into parts of at most `max` entries, in the list's order. */
export function portionsOf<T>(all: readonly T[], max: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / max) }, (_, n) => all.slice(n * max, (n + 1) * max));
}
