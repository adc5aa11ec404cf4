/** The error for a caller that has left while it waited. */
export class CallerLeft extends Error {
  constructor() {
    super("the caller has left");
    this.name = "CallerLeft";
  }
}

/**
 * Slots that owners share. An owner may take a further slot only while more slots are free than it has, so each new
 * owner still finds some. Waiting owners take turns, so an owner with much waiting work does not delay the others.
 */
export class FairSlots {
  readonly #max: number;
  /** Slots in use, by owner. */
  readonly #used = new Map<string, number>();
  /**
   * The functions that start the waiting work of each owner, in order of arrival. The owner whose turn is next comes
   * first.
   */
  readonly #lines = new Map<string, Set<() => void>>();
  #waiting = 0;
  #free: number;

  constructor(max: number) {
    this.#max = max;
    this.#free = max;
  }

  get used(): number {
    return this.#max - this.#free;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** The number of one owner's calls that wait. */
  waitingOf(owner: string): number {
    return this.#lines.get(owner)?.size ?? 0;
  }

  /** Whether the owner may take a slot now. */
  hasRoom(owner: string): boolean {
    return (this.#used.get(owner) ?? 0) < this.#free;
  }

  /**
   * Waits for a slot that is free again in the next turn of the event loop. So an owner starts half as many calls per
   * turn as there are slots, however many it makes, and others find slots in the same turn.
   */
  startInTurn(owner: string): Promise<void> {
    return new Promise((start) => {
      void this.run(owner, () => {
        start();
        return new Promise<void>((nextTurn) => setImmediate(nextTurn));
      });
    });
  }

  /**
   * Runs the work as soon as its owner may have a slot. If the signal aborts before, does not run it.
   * @throws CallerLeft, or what `work` throws.
   */
  async run<T>(owner: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (signal?.aborted) throw new CallerLeft();
    if (this.hasRoom(owner)) this.#take(owner);
    else await this.#wait(owner, signal);
    try {
      if (signal?.aborted) throw new CallerLeft();
      return await work();
    } finally {
      this.#release(owner);
    }
  }

  #wait(owner: string, signal: AbortSignal | undefined): Promise<void> {
    const line = this.#lines.get(owner) ?? new Set();
    this.#lines.set(owner, line);
    this.#waiting += 1;
    return new Promise((resolve, reject) => {
      const start = () => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      const leave = () => {
        this.#remove(owner, line, start);
        reject(new CallerLeft());
      };
      line.add(start);
      signal?.addEventListener("abort", leave, { once: true });
    });
  }

  #remove(owner: string, line: Set<() => void>, start: () => void): void {
    line.delete(start);
    this.#waiting -= 1;
    if (line.size === 0) this.#lines.delete(owner);
  }

  #take(owner: string): void {
    this.#used.set(owner, (this.#used.get(owner) ?? 0) + 1);
    this.#free -= 1;
  }

  #release(owner: string): void {
    const used = (this.#used.get(owner) ?? 0) - 1;
    if (used > 0) this.#used.set(owner, used);
    else this.#used.delete(owner);
    this.#free += 1;
    // An owner whose work starts goes to the end, where the loop finds it again if more of its work waits.
    for (const [owner, line] of this.#lines) {
      if (this.#free === 0) break;
      const [start] = line;
      if (start === undefined || !this.hasRoom(owner)) continue;
      this.#take(owner);
      this.#remove(owner, line, start);
      if (this.#lines.delete(owner)) this.#lines.set(owner, line);
      start();
    }
  }
}

/** A lone owner may have one of two slots. */
const PIECES = new FairSlots(2);

/**
 * Resolves when the next piece of long work may run: one piece per turn of the event loop for all long work of the
 * process together. A piece takes a few milliseconds, so that calls between two pieces wait less than 20 ms.
 */
export const nextPiece = (): Promise<void> => PIECES.startInTurn("long work");
