/** Things that requests are about and of which each serves once, in random order, as partners and users come. */
export class Subjects {
  #left: string[] = [];

  get left(): number {
    return this.#left.length;
  }

  /** Adds new ones, or gives back what was not used. */
  add(subjects: readonly string[]): void {
    this.#left = [...subjects, ...this.#left];
    shuffle(this.#left);
  }

  /** Takes some out that nobody else gets. */
  take(count: number): string[] {
    if (count > this.#left.length) throw new Error(`${count} are wanted and ${this.#left.length} are left`);
    return this.#left.splice(this.#left.length - count);
  }

  /** Some without taking them. */
  peek(count: number): string[] {
    return this.#left.slice(0, count);
  }
}

/** Fisher and Yates. */
export function shuffle<Item>(items: Item[]): void {
  for (let i = items.length - 1; i > 0; i--) {
    const other = Math.floor(Math.random() * (i + 1));
    [items[i], items[other]] = [items[other] as Item, items[i] as Item];
  }
}
