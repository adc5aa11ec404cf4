import pLimit from "p-limit";
import type pg from "pg";
import { Coalescer } from "../batching/coalescer.ts";
import type { Transaction } from "../db/pool.ts";
import { inTransaction, isLockTimeout, isRetryable, isStatementFault } from "../db/transaction.ts";
import { lockFreeVouchers, lockVoucher } from "../db/vouchers.ts";

/** Thrown by `decide` when what it decided on has changed under it: the whole batch is decided again. */
export class DecidedOnOldState extends Error {}

export interface VoucherLanesOptions<Item, Result> {
  pool: pg.Pool;
  /**
   * Decides and writes a batch inside a transaction that holds the row locks of all its vouchers; one result per item, in order.
   * May run several times for the same items; only the run that commits counts.
   */
  decide: (tx: Transaction, items: Item[]) => Promise<Result[]>;
  /** The result of an item whose voucher's row stayed locked by someone else for `lockWaitMs`. */
  busy: Result;
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

/**
 * Group commit for everything that moves vouchers. Items that are ready together share one transaction, which locks their
 * vouchers in id order and never waits for a lock. An item whose voucher is locked elsewhere goes to a second lane of its own
 * voucher, which does wait: one stuck row stalls nobody else.
 */
export class VoucherLanes<Item extends { voucherId: string }, Result> {
  readonly #options: VoucherLanesOptions<Item, Result>;
  readonly #fast: Coalescer<Item, Result>;
  readonly #slow = new Map<string, Coalescer<Item, Result>>();
  readonly #waitingRow = pLimit(WAITING_ROWS_MAX);

  constructor(options: VoucherLanesOptions<Item, Result>) {
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
    await Promise.all([...this.#slow.values()].map((lane) => lane.drain()));
  }

  #coalescer(run: (items: Item[]) => Promise<(Result | PromiseLike<Result>)[]>): Coalescer<Item, Result> {
    return new Coalescer((items: Item[]) => decideAgain(() => run(items)), {
      batchMax: BATCH_MAX,
      waitingMax: this.#options.waitingMax,
      splitOn: (error) => isWorthRepeating(error) || isStatementFault(error),
    });
  }

  async #decideFree(items: Item[]): Promise<(Result | PromiseLike<Result>)[]> {
    const { pool, decide } = this.#options;
    const decided = new Map<Item, Result>();
    await inTransaction(pool, async (tx) => {
      const locked = await lockFreeVouchers(tx, [...new Set(items.map((item) => item.voucherId))]);
      const ours = items.filter((item) => locked.has(item.voucherId));
      if (ours.length === 0) return;
      const results = await decide(tx, ours);
      for (const [index, item] of ours.entries()) decided.set(item, results[index] as Result);
    });
    return items.map((item) => (decided.has(item) ? (decided.get(item) as Result) : this.#waitForRow(item)));
  }

  #waitForRow(item: Item): Promise<Result> {
    const { voucherId } = item;
    let lane = this.#slow.get(voucherId);
    if (lane === undefined) {
      lane = this.#coalescer((items) => this.#waitingRow(() => this.#decideLocked(voucherId, items)));
      this.#slow.set(voucherId, lane);
    }
    const result = lane.submit(item);
    void lane.drain().then(() => this.#slow.delete(voucherId));
    return result;
  }

  async #decideLocked(voucherId: string, items: Item[]): Promise<Result[]> {
    const { pool, decide, busy, lockWaitMs } = this.#options;
    try {
      return await inTransaction(pool, async (tx) => {
        await tx.query("SELECT set_config('lock_timeout', $1, true)", [String(lockWaitMs)]);
        if (!(await lockVoucher(tx, voucherId))) throw new Error(`there is no voucher ${voucherId}`);
        return decide(tx, items);
      });
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
      if (!isWorthRepeating(error) || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

function isWorthRepeating(error: unknown): boolean {
  return error instanceof DecidedOnOldState || isRetryable(error);
}
