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
/** Connections of the slow path, each of which may wait for one row. The fast path has one connection of its own. */
const SLOW_PATH_CONNECTIONS = 4;
/** The share of `waitingMax` that may be on the slow path. In a worker, each item holds a job slot, and the fast path needs the other slots. */
const SLOW_PATH_SHARE = 1 / 4;
/** The share of the slow path's items that may hold a slot for the same row. */
const ROW_SHARE = 1 / 2;
/** Time without progress after which a row counts as stalled. Items beyond the shares then get the result `busy`. Milliseconds. */
const STALLED_AFTER_MS = 1_000;

interface SlowItem<Result> {
  /** The end of its wait, on the monotonic clock. Milliseconds. */
  giveUpAt: number;
  result: Promise<Result>;
}

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
 * - Slow path: items whose row was skipped wait for that row in a later transaction. Up to four rows are waited for at the same time, each on
 *   a connection of its own.
 *
 * When the fast transaction runs into another lock, such as an uncommitted reference, its items move to the slow path, where each row
 * waits alone. The slow path has room for a share of all items, and one row for a share of these. Items beyond a share wait only for a row
 * that makes progress. So other vouchers are delayed neither by many locked rows nor by many requests for the same voucher.
 */
export class GroupCommitter<Item extends { voucherId: string }, State, Result> {
  readonly #options: GroupCommitterOptions<Item, State, Result>;
  readonly #fastPath: Batcher<Item, Result>;
  readonly #lockedRows = new Map<string, LockedRow<Item, Result>>();
  readonly #slowItems = new Map<Item, SlowItem<Result>>();
  readonly #slowItemsMax: number;
  readonly #slowConnections = pLimit(SLOW_PATH_CONNECTIONS);

  constructor(options: GroupCommitterOptions<Item, State, Result>) {
    this.#options = options;
    this.#slowItemsMax = shareOf(options.waitingMax, SLOW_PATH_SHARE);
    this.#fastPath = this.#openBatcher((items) => this.#runFastPath(items));
  }

  /** Decides one item and commits the decision. @throws BatcherFull when too many wait, or the database's error. */
  submit(item: Item): Promise<Result> {
    return this.#fastPath.submit(item);
  }

  /** Resolves once no item is waiting or being decided. */
  async drain(): Promise<void> {
    await this.#fastPath.drain();
    await Promise.allSettled([...this.#slowItems.values()].map(({ result }) => result));
  }

  #openBatcher(run: (items: Item[]) => Promise<(Result | PromiseLike<Result>)[]>): Batcher<Item, Result> {
    return new Batcher((items: Item[]) => retryConflicts(() => run(items)), {
      batchMax: BATCH_MAX,
      waitingMax: this.#options.waitingMax,
      observer: this.#options.observer,
      splitOn: (error) => !isDatabaseUnavailable(error),
    });
  }

  async #runFastPath(items: Item[]): Promise<(Result | PromiseLike<Result>)[]> {
    const { pool, read, decide, busy } = this.#options;
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
      if (isLockTimeout(error)) return new Map<Item, Result>();
      throw error;
    });
    return items.map((item) => {
      if (decided.has(item)) return decided.get(item) as Result;
      // A free row has no decision if the transaction timed out on another lock. On the slow path, only the items that need that lock wait.
      return free.has(item.voucherId) || this.#hasSlowRoom(item.voucherId) ? this.#takeSlowPath(item) : busy;
    });
  }

  /** Whether one more item may wait for a locked row. Once the slow path's share is full, only if the row makes progress. */
  #hasSlowRoom(voucherId: string): boolean {
    if (this.#slowItems.size < this.#slowItemsMax) return true;
    const row = this.#lockedRows.get(voucherId);
    // With more locked rows than connections, a row may be without one and make no progress.
    return row !== undefined && this.#lockedRows.size <= SLOW_PATH_CONNECTIONS && timeToStallMs(row) > 0;
  }

  #takeSlowPath(item: Item): Promise<Result> {
    const row = this.#lockedRow(item.voucherId);
    const result = runInTurn(
      row.slots,
      () => row.batcher.submit(item),
      () => timeToStallMs(row),
      () => this.#options.busy,
    );
    this.#slowItems.set(item, { giveUpAt: performance.now() + this.#options.lockWaitMs, result });
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
    const giveUpAt = Math.min(...items.map((item) => this.#slowItems.get(item)?.giveUpAt ?? 0));
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
