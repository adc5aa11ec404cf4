/** Thrown by `submit` when more items wait than the coalescer may hold. */
export class CoalescerFull extends Error {
  constructor() {
    super("too many items are waiting");
    this.name = "CoalescerFull";
  }
}

interface Waiting<Item, Result> {
  item: Item;
  resolve: (result: Result | PromiseLike<Result>) => void;
  reject: (error: unknown) => void;
}

/** Watches what goes through a coalescer. */
export interface BatchObserver {
  /** Sees an item in its submitter's asynchronous context. */
  submitted(item: unknown): void;
  /** Runs a batch: returns what `work` returns and throws what it throws. */
  run<T>(items: readonly unknown[], work: () => Promise<T>): Promise<T>;
}

export interface CoalescerOptions {
  /** Most items handed over at once. */
  batchMax: number;
  /** Most items that may wait; one more is refused with {@link CoalescerFull}. */
  waitingMax: number;
  /** Batches that may be under way at the same time. More than one only where batches do not depend on each other. */
  lanes?: number;
  /** Whether a batch that failed with this error is worth trying again item by item, so that one poison item fails alone. */
  splitOn?: (error: unknown) => boolean;
  observer?: BatchObserver;
}

/**
 * Group commit: collects what is submitted while earlier batches are under way and hands it over as the next batch. There is
 * no timer: an item that finds a free lane leaves at the end of the current turn of the event loop, together with whatever else
 * arrived in that turn.
 *
 * `run` gets the items in the order of their submission and returns one result per item in the same order; a result may be a
 * promise, and then only its own submitter waits for it.
 */
export class Coalescer<Item, Result> {
  readonly #run: (items: Item[]) => Promise<(Result | PromiseLike<Result>)[]>;
  readonly #options: Required<Omit<CoalescerOptions, "observer">>;
  readonly #observer: BatchObserver | undefined;
  #waiting: Waiting<Item, Result>[] = [];
  #running = 0;
  #scheduled = false;
  #idle: (() => void)[] = [];

  constructor(run: (items: Item[]) => Promise<(Result | PromiseLike<Result>)[]>, options: CoalescerOptions) {
    const { observer, ...limits } = options;
    this.#run = observer === undefined ? run : (items) => observer.run(items, () => run(items));
    this.#observer = observer;
    this.#options = { lanes: 1, splitOn: () => false, ...limits };
  }

  /** Hands an item over. The item must be valid: whatever it breaks, it breaks for its batch. */
  submit(item: Item): Promise<Result> {
    if (this.#waiting.length >= this.#options.waitingMax) return Promise.reject(new CoalescerFull());
    this.#observer?.submitted(item);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#schedule();
    });
  }

  /** Resolves once nothing waits and nothing runs. */
  drain(): Promise<void> {
    if (this.#running === 0 && this.#waiting.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #schedule(): void {
    if (this.#scheduled || this.#running >= this.#options.lanes) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      while (this.#running < this.#options.lanes && this.#waiting.length > 0) void this.#start();
    });
  }

  async #start(): Promise<void> {
    const batch =
      this.#waiting.length <= this.#options.batchMax ? this.#waiting : this.#waiting.slice(0, this.#options.batchMax);
    this.#waiting = this.#waiting.slice(batch.length);
    this.#running += 1;
    try {
      await this.#settle(batch);
    } finally {
      this.#running -= 1;
      if (this.#waiting.length > 0) this.#schedule();
      else if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve();
    }
  }

  async #settle(batch: Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#run(batch.map((waiting) => waiting.item));
      if (results.length !== batch.length)
        throw new Error("a batch returned another number of results than it had items");
      for (const [index, waiting] of batch.entries()) waiting.resolve(results[index] as Result);
    } catch (error) {
      if (batch.length > 1 && this.#options.splitOn(error)) {
        for (const waiting of batch) await this.#settle([waiting]);
        return;
      }
      for (const waiting of batch) waiting.reject(error);
    }
  }
}
