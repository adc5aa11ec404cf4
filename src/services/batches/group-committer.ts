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
  retryConflicts,
  waitForLocks,
} from "../../db/transaction.ts";
import { lockFreeVouchers, lockVoucher } from "../../db/vouchers.ts";

/** Why a transaction did not decide an item. */
export type Undecided =
  /** Another transaction has locked what the item needs. */
  | "locked"
  /** The transaction ran into another lock, such as an uncommitted reference, so it decided none of its items. */
  | "crossed";

interface GroupCommitterOptions<Item, Result> {
  /**
   * Decides items in one transaction and commits: returns one result per item, in order. May run several times for the same items; only the
   * run that commits counts. With `waitMs`, all items are of one group, and the transaction waits so long for each lock. Without, it waits for
   * no lock that its items name.
   */
  commit: (items: Item[], waitMs: number | null) => Promise<(Result | Undecided)[]>;
  /** The name of what an undecided item waits for. Items of one group wait together. */
  groupOf: (item: Item, why: Undecided) => string;
  /** The result of an item that stays locked for `lockWaitMs`, or that finds no room on the slow path. */
  busy: Result;
  /** Observes the batches of both paths. */
  observer: BatchObserver;
  /** Longest wait for a lock, including the wait for a connection. Milliseconds. */
  lockWaitMs: number;
  /** Most items that may wait in this process. */
  waitingMax: number;
  /** Connections of the slow path, each of which may wait for one group. The fast path has one connection of its own. */
  slowConnections: number;
}

/** Most items in one transaction: large enough to share the cost of a commit, small enough to take milliseconds. */
const BATCH_MAX = 128;
/** Pauses before an item whose row was locked joins a later batch. Most transactions hold a row for a few milliseconds. Milliseconds. */
const SKIPPED_PAUSES_MS = [10, 20, 40, 80, 160];
/** The share of `waitingMax` that may be on the slow path. In a worker, each item holds a job slot, and the fast path needs the other slots. */
const SLOW_PATH_SHARE = 1 / 4;
/** The share of the slow path's items that may hold a slot of the same group. */
const GROUP_SHARE = 1 / 2;
/** Time without progress after which a group counts as stalled. Items beyond the shares then get the result `busy`. Milliseconds. */
const STALLED_AFTER_MS = 1_000;

/** Items that wait for the same lock. */
interface Group<Item, Result> {
  batcher: Batcher<Item, Result | Undecided>;
  slots: LimitFunction;
  /** Items of the group, with or without a slot. */
  waiting: number;
  /** When an item of this group was last decided, or else when the first one began to wait, on the monotonic clock. Milliseconds. */
  progressAt: number;
}

/**
 * Group commit. An item takes one of two paths:
 *
 * - Fast path: all items that are ready share one transaction. It skips what others have locked, so it waits for none. An item that was
 *   skipped joins later batches for some hundred milliseconds. Then it counts as locked.
 * - Slow path: items that count as locked wait in a transaction of their group, such as the items of one voucher. A few
 *   groups wait at the same time, each on a connection of its own.
 *
 * When the fast transaction runs into another lock, its items move to the slow path, where each group waits alone. The slow path has room for a
 * share of all items, and one group for a share of these. Items beyond a share wait only in a group that makes progress. So other items are
 * delayed neither by many locks nor by many requests for the same one.
 */
export class GroupCommitter<Item extends object, Result extends object | number | null> {
  readonly #options: GroupCommitterOptions<Item, Result>;
  readonly #fastPath: Batcher<Item, Result | Undecided>;
  readonly #pending = new Set<Promise<Result>>();
  /** Number of items that join a later batch after their pause. */
  #skipped = 0;
  /** When an item last counted as locked, on the monotonic clock. Milliseconds. */
  #countedLockedAt = Number.NEGATIVE_INFINITY;
  readonly #groups = new Map<string, Group<Item, Result>>();
  /** The end of each item's wait, on the monotonic clock. Milliseconds. */
  readonly #slowItems = new Map<Item, number>();
  readonly #slowItemsMax: number;
  readonly #slowConnections: LimitFunction;

  constructor(options: GroupCommitterOptions<Item, Result>) {
    this.#options = options;
    this.#slowItemsMax = shareOf(options.waitingMax, SLOW_PATH_SHARE);
    this.#slowConnections = pLimit(options.slowConnections);
    this.#fastPath = this.#openBatcher((items) => options.commit(items, null));
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
    let outcome = await this.#fastPath.submit(item);
    for (const pauseMs of SKIPPED_PAUSES_MS) {
      if (outcome !== "locked") break;
      // While locks last for long, only a share of the items may join later batches, because a worker's items hold job slots.
      const isCalm = performance.now() > this.#countedLockedAt + STALLED_AFTER_MS;
      const mayJoin = isCalm || this.#skipped < this.#slowItemsMax;
      if (!mayJoin || this.#groups.has(this.#options.groupOf(item, outcome))) return this.#takeSlowPath(item, outcome);
      this.#skipped += 1;
      await sleep(pauseMs);
      this.#skipped -= 1;
      outcome = await this.#fastPath.submit(item);
    }
    if (outcome === "locked") this.#countedLockedAt = performance.now();
    return isUndecided(outcome) ? this.#takeSlowPath(item, outcome) : outcome;
  }

  #openBatcher<R>(run: (items: Item[]) => Promise<R[]>): Batcher<Item, R> {
    return new Batcher((items: Item[]) => retryConflicts(() => run(items)), {
      batchMax: BATCH_MAX,
      waitingMax: this.#options.waitingMax,
      observer: this.#options.observer,
      splitOn: (error) => !isDatabaseUnavailable(error),
    });
  }

  /** Whether one more item may wait in a group. Once the slow path's share is full, only if the group makes progress. */
  #hasSlowRoom(name: string): boolean {
    if (this.#slowItems.size < this.#slowItemsMax) return true;
    const group = this.#groups.get(name);
    // With more groups than connections, a group may be without one and make no progress.
    return group !== undefined && this.#groups.size <= this.#slowConnections.concurrency && timeToStallMs(group) > 0;
  }

  #takeSlowPath(item: Item, why: Undecided): Result | Promise<Result> {
    const { groupOf, busy, lockWaitMs } = this.#options;
    const name = groupOf(item, why);
    if (why === "locked" && !this.#hasSlowRoom(name)) return busy;
    const group = this.#groups.get(name) ?? this.#openGroup(name);
    const giveUpAt = performance.now() + lockWaitMs;
    this.#slowItems.set(item, giveUpAt);
    group.waiting += 1;
    const wait = async (): Promise<Result> => {
      for (;;) {
        const outcome = await group.batcher.submit(item);
        if (!isUndecided(outcome)) return outcome;
        if (performance.now() >= giveUpAt) return busy;
      }
    };
    const result = runInTurn(
      group.slots,
      wait,
      () => timeToStallMs(group),
      () => busy,
    );
    const remove = () => {
      this.#slowItems.delete(item);
      group.waiting -= 1;
      if (group.waiting === 0) this.#groups.delete(name);
    };
    result.then(remove, remove);
    return result;
  }

  #openGroup(name: string): Group<Item, Result> {
    const group: Group<Item, Result> = {
      batcher: this.#openBatcher((items) => this.#runSlowPath(group, items)),
      slots: pLimit(shareOf(this.#slowItemsMax, GROUP_SHARE)),
      waiting: 0,
      progressAt: performance.now(),
    };
    this.#groups.set(name, group);
    return group;
  }

  /** Waits for a connection and then for the lock. Both waits together end when the first item's wait ends. */
  #runSlowPath(group: Group<Item, Result>, items: Item[]): Promise<(Result | Undecided)[]> {
    const giveUpAt = Math.min(...items.map((item) => this.#slowItems.get(item) ?? 0));
    const remainingMs = () => giveUpAt - performance.now();
    const commit = async () => {
      // At least 1 ms: a lock_timeout of 0 disables the timeout.
      const outcomes = await this.#options.commit(items, Math.max(1, Math.ceil(remainingMs())));
      if (!outcomes.every(isUndecided)) group.progressAt = performance.now();
      return outcomes;
    };
    return runInTurn(this.#slowConnections, commit, remainingMs, () => items.map(() => "locked" as const));
  }
}

interface VoucherCommitterOptions<Item, State, Result>
  extends Omit<GroupCommitterOptions<Item, Result>, "commit" | "groupOf" | "slowConnections"> {
  pool: pg.Pool;
  /**
   * Reads the state that `decide` needs, in separate statements after the locking one. Must send all of them before it awaits any. They
   * are sent before the result of the locking statement arrives, so they may cover items that this transaction does not decide.
   */
  read: (tx: Transaction, items: Item[]) => Promise<State>;
  /** Decides items whose vouchers this transaction has locked: returns one result per item, in order, and the statements to write. */
  decide: (items: Item[], state: State, tx: Transaction) => Promise<Decided<Result[]>>;
}

/** Opens a group committer for items that each need one voucher's row: reserve and release calls, redemptions and seals. */
export function openVoucherCommitter<Item extends { voucherId: string }, State, Result extends object | number | null>({
  pool,
  read,
  decide,
  ...options
}: VoucherCommitterOptions<Item, State, Result>): GroupCommitter<Item, Result> {
  const commit = async (items: Item[], waitMs: number | null): Promise<(Result | Undecided)[]> => {
    const voucherIds = [...new Set(items.map((item) => item.voucherId))];
    let mine: ReadonlySet<string> = new Set();
    const results = await readThenWrite(
      pool,
      (tx) => {
        const [voucherId = ""] = voucherIds;
        const wait = waitMs === null ? null : waitForLocks(tx, waitMs);
        // In one list, so that the first statement that fails gives the error.
        return Promise.all([
          wait,
          wait ? lockVoucher(tx, voucherId) : lockFreeVouchers(tx, voucherIds),
          read(tx, items),
        ]);
      },
      async ([, locked, state], tx) => {
        if (locked === false) throw new Error(`there is no voucher ${voucherIds[0]}`);
        mine = locked === true ? new Set(voucherIds) : locked;
        const lockedItems = items.filter((item) => mine.has(item.voucherId));
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
      if (results?.has(item)) return results.get(item) as Result;
      return results === null && mine.has(item.voucherId) ? "crossed" : "locked";
    });
  };
  return new GroupCommitter({ ...options, commit, groupOf: (item) => item.voucherId, slowConnections: 4 });
}

function isUndecided<Result>(outcome: Result | Undecided): outcome is Undecided {
  return outcome === "locked" || outcome === "crossed";
}

/** A share of a number of items, at least one. */
function shareOf(items: number, share: number): number {
  return Math.max(1, Math.floor(items * share));
}

/** Time until a group counts as stalled and its items without a slot stop waiting. Milliseconds. */
function timeToStallMs(group: { progressAt: number }): number {
  return group.progressAt + STALLED_AFTER_MS - performance.now();
}

/**
 * Runs `work` when `limit` has a free slot, or calls `giveUp` if no slot becomes free in time. Work that has started is always awaited.
 * @param remainingMs Returns how many more milliseconds to wait for a slot. Called again when that time has passed; it may then allow more.
 */
async function runInTurn<T>(
  limit: LimitFunction,
  work: () => Promise<T>,
  remainingMs: () => number,
  giveUp: () => T,
): Promise<T> {
  let state: "waiting" | "started" | "given up" = "waiting";
  const result = limit(() => {
    if (state === "given up") return giveUp();
    state = "started";
    return work();
  });
  if (limit.pendingCount === 0) return result;
  const timeOut = async (): Promise<T> => {
    for (let leftMs = remainingMs(); leftMs > 0; leftMs = remainingMs()) {
      await sleep(leftMs);
      if (state === "started") return result;
    }
    state = "given up";
    return giveUp();
  };
  return Promise.race([result, timeOut()]);
}
