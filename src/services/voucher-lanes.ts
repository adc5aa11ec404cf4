import pLimit, { type LimitFunction } from "p-limit";
import type pg from "pg";
import { type BatchObserver, Coalescer } from "../batching/coalescer.ts";
import type { Transaction } from "../db/pool.ts";
import {
  type Decided,
  isDatabaseUnavailable,
  isLockTimeout,
  isRetryable,
  lookThenWrite,
  waitForLocks,
} from "../db/transaction.ts";
import { lockFreeVouchers, lockVoucher } from "../db/vouchers.ts";
import { inTurn } from "./in-turn.ts";

export interface VoucherLanesOptions<Item, State, Result> {
  pool: pg.Pool;
  /**
   * Reads what is decided on, in statements of their own behind the one that locks. Sends them all before it waits for any; they
   * leave before the locking one is answered, so they may be about items that are not decided on after all.
   */
  read: (tx: Transaction, items: Item[]) => Promise<State>;
  /**
   * Decides a batch inside a transaction that holds the row locks of all its vouchers: one result per item, in order, and what is to
   * be written. May run several times for the same items; only the run that commits counts.
   */
  decide: (items: Item[], state: State, tx: Transaction) => Promise<Decided<Result[]>>;
  /** The result of an item whose voucher's row stayed locked by someone else for `lockWaitMs`. */
  busy: Result;
  /** Watches every batch of either lane. */
  observer: BatchObserver;
  lockWaitMs: number;
  /** Most items that may wait in this process. */
  waitingMax: number;
}

/** Most items in one transaction: large enough that the commit is shared well, small enough that it takes milliseconds. */
const BATCH_MAX = 128;
/** Times that a batch is decided again as a whole before its items are tried one by one. */
const ATTEMPTS_MAX = 3;
/** Connections that may wait for locked rows at the same time; the fast lane keeps one of its own. */
const WAITING_ROWS_MAX = 4;
/** The share of all items that may wait for one locked row. */
const ROW_SHARE = 1 / 4;
/** How long nothing may be decided on a row before items beyond that share are told that their voucher is busy. Milliseconds. */
const CROWD_WAIT_MS = 1_000;

/** What waits for one voucher's row. */
interface WaitingRow<Item, Result> {
  lane: Coalescer<Item, Result>;
  places: LimitFunction;
  results: Set<Promise<Result>>;
  /** When something was last decided on it, on the monotonic clock; at first, when it was first waited for. Milliseconds. */
  movedAt: number;
}

/**
 * Group commit for everything that moves vouchers. Items that are ready together share one transaction, which locks their
 * vouchers in id order and waits for no row. An item whose voucher is locked elsewhere goes to a second lane of its own
 * voucher, which does wait; and when the transaction meets another lock for longer than the pool's `lock_timeout`, as behind
 * another's uncommitted reference, all its items go there. One stuck row stalls nobody else, nor does a crowd that wants it.
 */
export class VoucherLanes<Item extends { voucherId: string }, State, Result> {
  readonly #options: VoucherLanesOptions<Item, State, Result>;
  readonly #fast: Coalescer<Item, Result>;
  readonly #waitingRows = new Map<string, WaitingRow<Item, Result>>();
  readonly #connections = pLimit(WAITING_ROWS_MAX);

  constructor(options: VoucherLanesOptions<Item, State, Result>) {
    this.#options = options;
    this.#fast = this.#coalescer((items) => this.#decideFree(items));
  }

  /**
   * Decides one item.
   * @throws CoalescerFull when too much waits, or what the database threw.
   */
  submit(item: Item): Promise<Result> {
    return this.#fast.submit(item);
  }

  /** Resolves once nothing is under way. */
  async drain(): Promise<void> {
    await this.#fast.drain();
    await Promise.allSettled([...this.#waitingRows.values()].flatMap(({ results }) => [...results]));
  }

  #coalescer(run: (items: Item[]) => Promise<(Result | PromiseLike<Result>)[]>): Coalescer<Item, Result> {
    return new Coalescer((items: Item[]) => decideAgain(() => run(items)), {
      batchMax: BATCH_MAX,
      waitingMax: this.#options.waitingMax,
      observer: this.#options.observer,
      splitOn: (error) => !isDatabaseUnavailable(error),
    });
  }

  async #decideFree(items: Item[]): Promise<(Result | PromiseLike<Result>)[]> {
    const { pool, read, decide } = this.#options;
    const voucherIds = [...new Set(items.map((item) => item.voucherId))];
    const decided = await lookThenWrite(
      pool,
      (tx) => Promise.all([lockFreeVouchers(tx, voucherIds), read(tx, items)]),
      async ([locked, state], tx) => {
        const ours = items.filter((item) => locked.has(item.voucherId));
        const { result, writes } = ours.length > 0 ? await decide(ours, state, tx) : { result: [], writes: [] };
        return { result: new Map(ours.map((item, index) => [item, result[index] as Result])), writes };
      },
    ).catch((error) => {
      if (isLockTimeout(error)) return new Map<Item, Result>();
      throw error;
    });
    return items.map((item) => (decided.has(item) ? (decided.get(item) as Result) : this.#waitForRow(item)));
  }

  #waitForRow(item: Item): Promise<Result> {
    const row = this.#waitingRow(item.voucherId);
    const result = inTurn(
      row.places,
      () => row.lane.submit(item),
      () => row.movedAt + CROWD_WAIT_MS - performance.now(),
      () => this.#options.busy,
    );
    row.results.add(result);
    const leave = () => {
      row.results.delete(result);
      if (row.results.size === 0) this.#waitingRows.delete(item.voucherId);
    };
    result.then(leave, leave);
    return result;
  }

  #waitingRow(voucherId: string): WaitingRow<Item, Result> {
    const known = this.#waitingRows.get(voucherId);
    if (known !== undefined) return known;
    const row: WaitingRow<Item, Result> = {
      lane: this.#coalescer((items) =>
        this.#connections(() => this.#decideLocked(voucherId, items)).finally(() => {
          row.movedAt = performance.now();
        }),
      ),
      places: pLimit(Math.max(1, Math.floor(this.#options.waitingMax * ROW_SHARE))),
      results: new Set(),
      movedAt: performance.now(),
    };
    this.#waitingRows.set(voucherId, row);
    return row;
  }

  async #decideLocked(voucherId: string, items: Item[]): Promise<Result[]> {
    const { pool, read, decide, busy, lockWaitMs } = this.#options;
    try {
      return await lookThenWrite(
        pool,
        (tx) => Promise.all([waitForLocks(tx, lockWaitMs), lockVoucher(tx, voucherId), read(tx, items)]),
        ([, locked, state], tx) => {
          if (!locked) throw new Error(`there is no voucher ${voucherId}`);
          return decide(items, state, tx);
        },
      );
    } catch (error) {
      if (isLockTimeout(error)) return items.map(() => busy);
      throw error;
    }
  }
}

async function decideAgain<T>(run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      if (!isRetryable(error) || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}
