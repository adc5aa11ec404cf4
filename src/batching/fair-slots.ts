/** Slots that owners share. An owner may take another one only while more are free than it has, so each further owner still finds some. */
export class FairSlots {
  readonly #max: number;
  /** Slots in use, by owner. */
  readonly #used = new Map<string, number>();
  #waiting: { owner: string; start: () => void }[] = [];
  #free: number;

  constructor(max: number) {
    this.#max = max;
    this.#free = max;
  }

  get used(): number {
    return this.#max - this.#free;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Whether the owner may take a slot now. */
  hasRoom(owner: string): boolean {
    return (this.#used.get(owner) ?? 0) < this.#free;
  }

  /** Does the work as soon as its owner may have a slot. */
  async run<T>(owner: string, work: () => Promise<T>): Promise<T> {
    if (!this.hasRoom(owner)) await new Promise<void>((start) => this.#waiting.push({ owner, start }));
    else this.#take(owner);
    try {
      return await work();
    } finally {
      const used = (this.#used.get(owner) ?? 0) - 1;
      if (used > 0) this.#used.set(owner, used);
      else this.#used.delete(owner);
      this.#free += 1;
      this.#startWaiting();
    }
  }

  #take(owner: string): void {
    this.#used.set(owner, (this.#used.get(owner) ?? 0) + 1);
    this.#free -= 1;
  }

  #startWaiting(): void {
    this.#waiting = this.#waiting.filter(({ owner, start }) => {
      if (!this.hasRoom(owner)) return true;
      this.#take(owner);
      start();
      return false;
    });
  }
}
