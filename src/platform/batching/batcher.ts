import { portionsOf, Shares, splitInTurns } from "./shares.ts";

/** The error for an item that is submitted while too many items wait, in total or for its owner. */
export class BatcherFull extends Error {
  constructor() {
    super("too many items are waiting");
    this.name = "BatcherFull";
  }
}

/** The error for an item that is submitted after the close. */
export class BatcherClosed extends Error {
  constructor() {
    super("no further item is accepted, because the process closes");
    this.name = "BatcherClosed";
  }
}

/** Tracks work that has begun and has not ended. */
export class OpenWork {
  readonly #open = new Set<Promise<unknown>>();
  #closed = false;

  /** @throws BatcherClosed after the close, or the error of `work`. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new BatcherClosed();
    const running = work();
    this.#open.add(running);
    return running.finally(() => this.#open.delete(running));
  }

  /** Refuses further work. Resolves when all begun work has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#open);
  }
}

/** If so many runs fail in a row, no single item is the cause: one bad item among 128 makes half as many fail. */
const FAILURES_MAX = 16;

interface Waiting<Item, Result> {
  item: Item;
  owner: string;
  resolve: (result: Result | PromiseLike<Result>) => void;
  reject: (error: unknown) => void;
}

/** Measures or traces the batches of a batcher. */
export interface BatchObserver {
  /** Called for each item in the submitter's asynchronous context. */
  submitted(item: unknown): void;
  /** Runs a batch. Returns or throws the outcome of `work`. */
  run<T>(items: readonly unknown[], work: () => Promise<T>): Promise<T>;
}

export interface BatcherOptions<Item> {
  batchMax: number;
  /** Maximum number of waiting items. Further items are rejected with {@link BatcherFull}. */
  waitingMax: number;
  /** Maximum number of batches that run at the same time. Default: 1. If more, batches must be independent. */
  concurrency?: number;
  /**
   * Returns true if a batch that failed with this error should be run again in halves. Halves are divided further,
   * until only the bad items fail, each with its own error. One bad item among 128 causes at most 14 further runs.
   * After {@link FAILURES_MAX} failures in a row, division ends, because the error may affect all items. Default:
   * false.
   */
  splitOn?: (error: unknown) => boolean;
  /**
   * Returns the owner of an item. When more items wait than fit into a batch, owners take turns. Each may use only a
   * part of `waitingMax` ({@link Shares}). Default: one owner for all items, which may use all of `waitingMax`.
   */
  ownerOf?: (item: Item) => string;
  observer?: BatchObserver;
}

/**
 * Collects the items that are submitted while batches run, and runs them in the next batches. If fewer than
 * `concurrency` batches run, the next batch starts at the end of the current turn of the event loop: no timer delays
 * it. Within a batch, items are in the order of submission, and `run` returns one result per item in this order. If a
 * result is a promise, only the item's submitter waits for it: the batch ends earlier.
 */
export class Batcher<Item, Result> {
  readonly #run: (items: Item[]) => Promise<(Result | PromiseLike<Result>)[]>;
  readonly #options: Required<Omit<BatcherOptions<Item>, "observer" | "ownerOf">>;
  readonly #observer: BatchObserver | undefined;
  readonly #ownerOf: ((item: Item) => string) | undefined;
  readonly #shares: Shares;
  #waiting: Waiting<Item, Result>[] = [];
  #running = 0;
  #scheduled = false;
  #idle: (() => void)[] = [];
  #closed = false;

  constructor(run: (items: Item[]) => Promise<(Result | PromiseLike<Result>)[]>, options: BatcherOptions<Item>) {
    const { observer, ownerOf, ...limits } = options;
    this.#run = observer === undefined ? run : (items) => observer.run(items, () => run(items));
    this.#observer = observer;
    this.#ownerOf = ownerOf;
    this.#shares = new Shares(options.waitingMax);
    this.#options = { concurrency: 1, splitOn: () => false, ...limits };
  }

  /**
   * Adds an item to a batch. Validate the item first: if `run` throws, its whole batch is rejected.
   * @throws BatcherFull, BatcherClosed, or the error of `run`.
   */
  submit(item: Item): Promise<Result> {
    if (this.#closed) return Promise.reject(new BatcherClosed());
    const owner = this.#ownerOf?.(item) ?? "";
    if (!this.#hasRoom(owner)) return Promise.reject(new BatcherFull());
    this.#shares.take(owner);
    this.#observer?.submitted(item);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, owner, resolve, reject });
      this.#schedule();
    });
  }

  /** Accepts no further item. Resolves when no item waits and no batch runs. */
  close(): Promise<void> {
    this.#closed = true;
    if (this.#running === 0 && this.#waiting.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #hasRoom(owner: string): boolean {
    return this.#ownerOf === undefined ? this.#waiting.length < this.#options.waitingMax : this.#shares.hasRoom(owner);
  }

  #schedule(): void {
    if (this.#scheduled || this.#running >= this.#options.concurrency) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      while (this.#running < this.#options.concurrency && this.#waiting.length > 0) void this.#start();
    });
  }

  async #start(): Promise<void> {
    const { batchMax } = this.#options;
    const [batch, others] =
      this.#waiting.length <= batchMax ? [this.#waiting, []] : splitInTurns(this.#waiting, batchMax);
    this.#waiting = others;
    for (const { owner } of batch) this.#shares.release(owner);
    this.#running += 1;
    try {
      await this.#apply(batch);
    } finally {
      this.#running -= 1;
      if (this.#waiting.length > 0) this.#schedule();
      else if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve();
    }
  }

  /**
   * Runs a batch and settles its items.
   * @param row the number of failures in a row, over all parts of the batch.
   */
  async #apply(batch: Waiting<Item, Result>[], row = { failures: 0 }): Promise<void> {
    try {
      const results = await this.#run(batch.map((waiting) => waiting.item));
      if (results.length !== batch.length) {
        throw new Error(`a batch of ${batch.length} items returned ${results.length} results`);
      }
      row.failures = 0;
      for (const [index, waiting] of batch.entries()) waiting.resolve(results[index] as Result);
    } catch (error) {
      row.failures += 1;
      if (batch.length > 1 && row.failures < FAILURES_MAX && this.#options.splitOn(error)) {
        for (const half of portionsOf(batch, Math.ceil(batch.length / 2))) await this.#apply(half, row);
        return;
      }
      for (const waiting of batch) waiting.reject(error);
    }
  }
}

/** The part of a `net.Socket` that is used here. */
interface Connection {
  write(...parts: unknown[]): boolean;
  cork(): void;
  uncork(): void;
}

/**
 * Combines the writes of an event-loop turn into one system call. In a busy process, system calls are a query's main
 * cost.
 */
export function writeOnceATurn(connection: Connection): void {
  const write = connection.write.bind(connection);
  let corked = false;
  connection.write = (...parts: unknown[]) => {
    if (!corked) {
      corked = true;
      connection.cork();
      setImmediate(() => {
        corked = false;
        connection.uncork();
      });
    }
    return write(...parts);
  };
}
