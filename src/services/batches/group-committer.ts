import { setTimeout as sleep } from "node:timers/promises";
import pLimit, { type LimitFunction } from "p-limit";
import type pg from "pg";
import { Batcher, type BatchObserver } from "../../batching/batcher.ts";
import type { Transaction } from "../../db/pool.ts";
import {
  type Decided,
  isDatabaseUnavailable,
  isLockTimeout,
  readThenWrite,
  waitForLocks,
} from "../../db/transaction.ts";
import { lockFreeVouchers, lockVoucher } from "../../db/vouchers.ts";
import { retryConflicts } from "./retry-conflicts.ts";
import { runInTurn } from "./run-in-turn.ts";

interface GroupCommitterOptions<Item, State, Result> {
  pool: pg.Pool;
  /**
   * Reads the state that `decide` needs, in separate statements after the locking one. Must send all of them before it awaits any. They
   * are sent before the result of the locking statement arrives, so they may cover items that this transaction does not decide.
   */
  read: (tx: Transaction, items: Item[]) => Promise<State>;
  /**
   * Decides items whose vouchers this transaction has locked: returns one result per item, in order, and the statements to write.
   * May run several times for the same items; only the run that commits counts.
   */
  decide: (items: Item[], state: State, tx: Transaction) => Promise<Decided<Result[]>>;
  /** The result of an item whose voucher stays locked for `lockWaitMs`, or that finds no room on the slow path. */
  busy: Result;
  /** Observes the batches of both paths. */
  observer: BatchObserver;
  /** Longest wait for a locked row, including the wait for a connection. Milliseconds. */
  lockWaitMs: number;
  /** Most items that may wait in this process. */
  waitingMax: number;
}

/** Most items in one transaction: large enough to share the cost of a commit, small enough to take milliseconds. */
const BATCH_MAX = 128;
/** Pauses before an item whose row was locked joins a later batch. Most transactions hold a row for a few milliseconds. Milliseconds. */
const SKIPPED_PAUSES_MS = [10, 20, 40, 80, 160];
/** Connections of the slow path, each of which may wait for one row. The fast path has one connection of its own. */
const SLOW_PATH_CONNECTIONS = 4;
/** The share of `waitingMax` that may be on the slow path. In a worker, each item holds a job slot, and the fast path needs the other slots. */
const SLOW_PATH_SHARE = 1 / 4;
/** The share of the slow path's items that may hold a slot for the same row. */
const ROW_SHARE = 1 / 2;
/** Time without progress after which a row counts as stalled. Items beyond the shares then get the result `busy`. Milliseconds. */
const STALLED_AFTER_MS = 1_000;

/** A row that another transaction holds locked, and the items that wait for it. */
interface LockedRow<Item, Result> {
  batcher: Batcher<Item, Result>;
  slots: LimitFunction;
  /** Items that wait for the row, with or without a slot. */
  waiting: number;
  /** When an item of this row was last decided, or else when the first one began to wait, on the monotonic clock. Milliseconds. */
  progressAt: number;
}

/**
 * Group commit for reserve and release calls, redemptions and seals. An item takes one of two paths:
 *
 * - Fast path: all items that are ready share one transaction. It locks their vouchers in id order and skips locked rows, so it waits for none.
 *   An item whose row was skipped joins later batches for some hundred milliseconds. Then the row counts as locked.
 * - Slow path: items whose row counts as locked wait for it in a transaction of their own. Up to four rows are waited for at the same time,
 *   each on a connection of its own.
 *
 * When the fast transaction runs into another lock, such as an uncommitted reference, its items move to the slow path, where each row
 * waits alone. The slow path has room for a share of all items, and one row for a share of these. Items beyond a share wait only for a row
 * that makes progress. So other vouchers are delayed neither by many locked rows nor by many requests for the same voucher.
 */
export class GroupCommitter<Item extends { voucherId: string }, State, Result extends object | number | null> {
  readonly #options: GroupCommitterOptions<Item, State, Result>;
  /** The result is undefined if the item's row was locked. */
  readonly #fastPath: Batcher<Item, Result | undefined>;
  readonly #pending = new Set<Promise<Result>>();
  /** Number of items that join a later batch after their pause. */
  #skipped = 0;
  /** When a row last counted as locked, on the monotonic clock. Milliseconds. */
  #countedLockedAt = Number.NEGATIVE_INFINITY;
  readonly #lockedRows = new Map<string, LockedRow<Item, Result>>();
  /** The end of each item's wait, on the monotonic clock. Milliseconds. */
  readonly #slowItems = new Map<Item, number>();
  readonly #slowItemsMax: number;
  readonly #slowConnections = pLimit(SLOW_PATH_CONNECTIONS);

  constructor(options: GroupCommitterOptions<Item, State, Result>) {
    this.#options = options;
    this.#slowItemsMax = shareOf(options.waitingMax, SLOW_PATH_SHARE);
    this.#fastPath = this.#openBatcher((items) => this.#runFastPath(items));
  }

  /** Decides one item and commits the decision. @throws BatcherFull when too many wait, or the database's error. */
  submit(item: Item): Promise<Result> {
    const result = this.#submit(item);
    const remove = () => this.#pending.delete(result);
    this.#pending.add(result);
    result.then(remove, remove);
    return result;
  }

  /** Resolves once no item is waiting or being decided. */
  async drain(): Promise<void> {
    await Promise.allSettled(this.#pending);
  }

  async #submit(item: Item): Promise<Result> {
    let result = await this.#fastPath.submit(item);
    for (const pauseMs of SKIPPED_PAUSES_MS) {
      if (result !== undefined) return result;
      // While rows stay locked for long, only a share of the items may join later batches, because a worker's items hold job slots.
      const isCalm = performance.now() > this.#countedLockedAt + STALLED_AFTER_MS;
      const mayJoin = isCalm || this.#skipped < this.#slowItemsMax;
      if (!mayJoin || this.#lockedRows.has(item.voucherId)) return this.#takeSlowPath(item);
      this.#skipped += 1;
      await sleep(pauseMs);
      this.#skipped -= 1;
      result = await this.#fastPath.submit(item);
    }
    if (result !== undefined) return result;
    this.#countedLockedAt = performance.now();
    return this.#takeSlowPath(item);
  }

  #openBatcher<R>(run: (items: Item[]) => Promise<(R | PromiseLike<R>)[]>): Batcher<Item, R> {
    return new Batcher((items: Item[]) => retryConflicts(() => run(items)), {
      batchMax: BATCH_MAX,
      waitingMax: this.#options.waitingMax,
      observer: this.#options.observer,
      splitOn: (error) => !isDatabaseUnavailable(error),
    });
  }

  async #runFastPath(items: Item[]): Promise<(Result | PromiseLike<Result> | undefined)[]> {
    const { pool, read, decide } = this.#options;
    const voucherIds = [...new Set(items.map((item) => item.voucherId))];
    let free = new Set<string>();
    const decided = await readThenWrite(
      pool,
      (tx) => Promise.all([lockFreeVouchers(tx, voucherIds), read(tx, items)]),
      async ([locked, state], tx) => {
        free = locked;
        const lockedItems = items.filter((item) => locked.has(item.voucherId));
        const decision: Decided<Result[]> =
          lockedItems.length > 0 ? await decide(lockedItems, state, tx) : { result: [], writes: [] };
        const { result } = decision;
        return { ...decision, result: new Map(lockedItems.map((item, index) => [item, result[index] as Result])) };
      },
    ).catch((error) => {
      if (isLockTimeout(error)) return null;
      throw error;
    });
    return items.map((item) => {
      if (decided !== null) return decided.get(item);
      // The transaction timed out on another lock. On the slow path, only the items that need that lock wait.
      return this.#takeSlowPath(item, free.has(item.voucherId));
    });
  }

  /** Whether one more item may wait for a locked row. Once the slow path's share is full, only if the row makes progress. */
  #hasSlowRoom(voucherId: string): boolean {
    if (this.#slowItems.size < this.#slowItemsMax) return true;
    const row = this.#lockedRows.get(voucherId);
    // With more locked rows than connections, a row may be without one and make no progress.
    return row !== undefined && this.#lockedRows.size <= SLOW_PATH_CONNECTIONS && timeToStallMs(row) > 0;
  }

  #takeSlowPath(item: Item, isRowFree = false): Result | Promise<Result> {
    if (!isRowFree && !this.#hasSlowRoom(item.voucherId)) return this.#options.busy;
    const row = this.#lockedRow(item.voucherId);
    const result = runInTurn(
      row.slots,
      () => row.batcher.submit(item),
      () => timeToStallMs(row),
      () => this.#options.busy,
    );
    this.#slowItems.set(item, performance.now() + this.#options.lockWaitMs);
    row.waiting += 1;
    const remove = () => {
      this.#slowItems.delete(item);
      row.waiting -= 1;
      if (row.waiting === 0) this.#lockedRows.delete(item.voucherId);
    };
    result.then(remove, remove);
    return result;
  }

  #lockedRow(voucherId: string): LockedRow<Item, Result> {
    const existing = this.#lockedRows.get(voucherId);
    if (existing !== undefined) return existing;
    const row: LockedRow<Item, Result> = {
      batcher: this.#openBatcher((items) => this.#runSlowPath(row, voucherId, items)),
      slots: pLimit(shareOf(this.#slowItemsMax, ROW_SHARE)),
      waiting: 0,
      progressAt: performance.now(),
    };
    this.#lockedRows.set(voucherId, row);
    return row;
  }

  /** Waits for a connection and then for the row. Both waits together end when the first item's wait ends. */
  #runSlowPath(row: LockedRow<Item, Result>, voucherId: string, items: Item[]): Promise<Result[]> {
    const giveUpAt = Math.min(...items.map((item) => this.#slowItems.get(item) ?? 0));
    const remainingMs = () => giveUpAt - performance.now();
    return runInTurn(
      this.#slowConnections,
      () => this.#lockAndDecide(row, voucherId, items, remainingMs),
      remainingMs,
      () => items.map(() => this.#options.busy),
    );
  }

  async #lockAndDecide(
    row: LockedRow<Item, Result>,
    voucherId: string,
    items: Item[],
    remainingMs: () => number,
  ): Promise<Result[]> {
    const { pool, read, decide, busy } = this.#options;
    try {
      const results = await readThenWrite(
        pool,
        (tx) =>
          Promise.all([
            // At least 1 ms: a lock_timeout of 0 disables the timeout.
            waitForLocks(tx, Math.max(1, Math.ceil(remainingMs()))),
            lockVoucher(tx, voucherId),
            read(tx, items),
          ]),
        ([, locked, state], tx) => {
          if (!locked) throw new Error(`there is no voucher ${voucherId}`);
          return decide(items, state, tx);
        },
      );
      row.progressAt = performance.now();
      return results;
    } catch (error) {
      if (isLockTimeout(error)) return items.map(() => busy);
      throw error;
    }
  }
}

/** A share of a number of items, at least one. */
function shareOf(items: number, share: number): number {
  return Math.max(1, Math.floor(items * share));
}

/** Time until a row counts as stalled and items without a slot stop waiting for it. Milliseconds. */
function timeToStallMs(row: { progressAt: number }): number {
  return row.progressAt + STALLED_AFTER_MS - performance.now();
}
