import { setTimeout as sleep } from "node:timers/promises";
import pLimit, { type LimitFunction } from "p-limit";
import { Batcher, type BatchObserver, OpenWork } from "../../platform/batching/batcher.ts";
import { CallerLeft, FairSlots } from "../../platform/batching/fair-slots.ts";
import { Shares } from "../../platform/batching/shares.ts";
import { isDatabaseUnavailable, retryConflicts } from "../../platform/db/transaction.ts";

/** Why a transaction did not decide an item. */
export type Undecided =
  /** Another transaction has locked a row that the item needs. */
  | "locked"
  /** The transaction could not get a lock other than an item's row lock. So it decided none of its items. */
  | "crossed";

export interface GroupCommitterOptions<Item, Result> {
  /**
   * Decides items in one transaction and commits it. Returns one result per item, in order. May run several times for
   * the same items. Only the run that commits counts. With `waitMs`, all items belong to one group, and the transaction
   * waits at most that long for each lock. Without `waitMs`, it does not wait for locks of items' rows.
   */
  commit: (items: Item[], waitMs: number | null) => Promise<(Result | Undecided)[]>;
  /** The name of the lock for which an undecided item waits. Items of one group wait together. */
  groupOf: (item: Item, why: Undecided) => string;
  /** The owner of an item and of its whole group. Owners share the batches, connections and slow path fairly. */
  ownerOf: (item: Item) => string;
  /** The result of an item that stays locked for `lockWaitMs`, or for which the slow path has no room. */
  busy: Result;
  /** Observes the batches of the fast and the slow path. */
  observer: BatchObserver;
  /** Maximum wait for a lock, including the wait for a connection. Milliseconds. */
  lockWaitMs: number;
  /**
   * Maximum number of items that wait for a batch. The slow path, for items that wait for a lock, has a capacity of its
   * own. When that is used up, a locked item may wait only in a group that makes progress.
   */
  waitingMax: number;
  /** Set if the caller never submits more than `waitingMax` items at a time, so that no item has to be refused. */
  isBounded?: true;
  /** Number of connections for the slow path (items that wait for a lock). Each can wait for one group's lock. */
  slowConnections: number;
}

/** Maximum number of items in one transaction. Many items share a commit, which still takes only milliseconds. */
const BATCH_MAX = 128;
/** Pauses before an item whose row was locked joins a later batch. Most locks last a few milliseconds. Milliseconds. */
const SKIPPED_PAUSES_MS = [10, 20, 40, 80, 160];
/** Minimum time between the starts of two tries of an item that waits for a lock. Milliseconds. */
const REPEAT_AFTER_MS = 20;
/**
 * Capacity for items that wait for a lock, as a share of `waitingMax`. In a worker, each waiting item occupies a job
 * slot, and other items need the rest of the slots.
 */
const SLOW_PATH_SHARE = 1 / 4;
/** Maximum share of {@link SLOW_PATH_SHARE} for one group: the items that wait for the same lock. */
const GROUP_SHARE = 1 / 2;
/** If no item of a group is decided for this long, its items beyond the group's share get `busy`. Milliseconds. */
const STALLED_AFTER_MS = 1_000;

/** Items that wait for the same lock. */
interface Group<Item, Result> {
  owner: string;
  batcher: Batcher<Item, Result | Undecided>;
  slots: LimitFunction;
  /** All items of the group, including those that exceed the group's share and have not begun to wait for the lock. */
  waiting: number;
  /** When an item of this group was last decided, or else when the first began to wait. Milliseconds, monotonic. */
  progressAt: number;
}

/**
 * Group commit. An item takes one of two paths:
 *
 * - Fast path: all items that are ready share one transaction. It skips items whose rows other transactions have
 *   locked, so it never waits for them. A skipped item is tried again in later batches for some hundred milliseconds.
 *   Then it counts as locked.
 * - Slow path: items that count as locked wait in a transaction of their group, such as the items of one voucher. A few
 *   groups wait at the same time, each on its own connection.
 *
 * If the fast path's transaction cannot get a lock other than that of an item's row, its items move to the slow path,
 * where each group waits alone. The slow path has a limited capacity, which owners share. One group may use half of it.
 * When the capacity is used up, only items of groups that make progress may wait. So other items are delayed neither by
 * many locks nor by many requests for one lock.
 */
export class GroupCommitter<Item extends object, Result extends object | number | null> {
  readonly #options: GroupCommitterOptions<Item, Result>;
  readonly #fastPath: Batcher<Item, Result | Undecided>;
  readonly #work = new OpenWork();
  /** Room for skipped items, which join a later batch after their pause. */
  readonly #skipped: Shares;
  /** The time on the monotonic clock when an item last counted as locked. Milliseconds. */
  #countedLockedAt = Number.NEGATIVE_INFINITY;
  readonly #groups = new Map<string, Group<Item, Result>>();
  /** The items on the slow path, each with the time on the monotonic clock when its wait ends. Milliseconds. */
  readonly #slowItems = new Map<Item, number>();
  readonly #slowItemsMax: number;
  readonly #slowPlaces: Shares;
  readonly #slowConnections: FairSlots;

  constructor(options: GroupCommitterOptions<Item, Result>) {
    this.#options = options;
    this.#slowItemsMax = shareOf(options.waitingMax, SLOW_PATH_SHARE);
    this.#skipped = new Shares(this.#slowItemsMax);
    this.#slowPlaces = new Shares(this.#slowItemsMax);
    this.#slowConnections = new FairSlots(options.slowConnections);
    this.#fastPath = this.#openBatcher((items) => options.commit(items, null), options.ownerOf);
  }

  /**
   * Decides one item and commits the decision.
   * @throws BatcherFull when too many items wait, BatcherClosed after the close, or the database's error.
   */
  submit(item: Item): Promise<Result> {
    return this.#work.run(() => this.#submit(item));
  }

  /** Accepts no further item. Resolves once all accepted items are decided. */
  close(): Promise<void> {
    return this.#work.close();
  }

  async #submit(item: Item): Promise<Result> {
    const owner = this.#options.ownerOf(item);
    let outcome = await this.#fastPath.submit(item);
    for (const pauseMs of SKIPPED_PAUSES_MS) {
      if (outcome !== "locked") break;
      // While locks last long, only a share of the skipped items may join later batches, as each occupies a job slot.
      const isCalm = performance.now() > this.#countedLockedAt + STALLED_AFTER_MS;
      const mayJoin = isCalm || this.#skipped.hasRoom(owner);
      if (!mayJoin || this.#groups.has(this.#options.groupOf(item, outcome))) return this.#takeSlowPath(item, outcome);
      this.#skipped.take(owner);
      await sleep(pauseMs);
      this.#skipped.release(owner);
      outcome = await this.#fastPath.submit(item);
    }
    if (outcome === "locked") this.#countedLockedAt = performance.now();
    return isUndecided(outcome) ? this.#takeSlowPath(item, outcome) : outcome;
  }

  #openBatcher<R>(run: (items: Item[]) => Promise<R[]>, ownerOf?: (item: Item) => string): Batcher<Item, R> {
    return new Batcher((items: Item[]) => retryConflicts(() => run(items)), {
      batchMax: BATCH_MAX,
      waitingMax: this.#options.isBounded ? Number.POSITIVE_INFINITY : this.#options.waitingMax,
      ...(ownerOf && { ownerOf }),
      observer: this.#options.observer,
      splitOn: (error) => !isDatabaseUnavailable(error),
    });
  }

  /** Whether the group makes progress. Only then may a locked item wait in it while its owner has no free place. */
  #makesProgress(name: string): boolean {
    const group = this.#groups.get(name);
    if (group === undefined || timeToStallMs(group) <= 0) return false;
    // If groups of this owner wait for a connection, this group may be one of them. Then it makes no progress.
    return this.#slowConnections.waitingOf(group.owner) === 0;
  }

  #takeSlowPath(item: Item, why: Undecided): Result | Promise<Result> {
    const { groupOf, ownerOf, busy, lockWaitMs } = this.#options;
    const [name, owner] = [groupOf(item, why), ownerOf(item)];
    const hasPlace = this.#slowPlaces.hasRoom(owner);
    if (why === "locked" && !hasPlace && !this.#makesProgress(name)) return busy;
    if (hasPlace) this.#slowPlaces.take(owner);
    const group = this.#groups.get(name) ?? this.#openGroup(name, owner);
    const giveUpAt = performance.now() + lockWaitMs;
    this.#slowItems.set(item, giveUpAt);
    group.waiting += 1;
    const wait = async (): Promise<Result> => {
      for (;;) {
        const repeatAt = performance.now() + REPEAT_AFTER_MS;
        const outcome = await group.batcher.submit(item);
        if (!isUndecided(outcome)) return outcome;
        if (performance.now() >= giveUpAt) return busy;
        if (performance.now() < repeatAt) await sleep(repeatAt - performance.now());
      }
    };
    const result = runUnlessStalled(group, wait, busy);
    const remove = () => {
      this.#slowItems.delete(item);
      if (hasPlace) this.#slowPlaces.release(owner);
      group.waiting -= 1;
      if (group.waiting === 0) this.#groups.delete(name);
    };
    result.then(remove, remove);
    return result;
  }

  #openGroup(name: string, owner: string): Group<Item, Result> {
    const group: Group<Item, Result> = {
      owner,
      batcher: this.#openBatcher((items) => this.#runSlowPath(group, items)),
      slots: pLimit(shareOf(this.#slowItemsMax, GROUP_SHARE)),
      waiting: 0,
      progressAt: performance.now(),
    };
    this.#groups.set(name, group);
    return group;
  }

  /** Waits for a connection and for the lock, together at most until the first item's wait ends. */
  #runSlowPath(group: Group<Item, Result>, items: Item[]): Promise<(Result | Undecided)[]> {
    const giveUpAt = Math.min(...items.map((item) => this.#slowItems.get(item) ?? 0));
    const remainingMs = () => giveUpAt - performance.now();
    const commit = async () => {
      // Uses at least 1 ms, because a lock_timeout of 0 means no limit.
      const outcomes = await this.#options.commit(items, Math.max(1, Math.ceil(remainingMs())));
      if (!outcomes.every(isUndecided)) group.progressAt = performance.now();
      return outcomes;
    };
    const isOver = AbortSignal.timeout(Math.max(0, Math.ceil(remainingMs())));
    return this.#slowConnections.run(group.owner, commit, isOver).catch((error) => {
      if (error instanceof CallerLeft) return items.map(() => "locked" as const);
      throw error;
    });
  }
}

function isUndecided<Result>(outcome: Result | Undecided): outcome is Undecided {
  return outcome === "locked" || outcome === "crossed";
}

/** A share of a number of items, but at least one item. */
function shareOf(items: number, share: number): number {
  return Math.max(1, Math.floor(items * share));
}

/** Time until a group has been without a decision for {@link STALLED_AFTER_MS}. Milliseconds. */
function timeToStallMs(group: { progressAt: number }): number {
  return group.progressAt + STALLED_AFTER_MS - performance.now();
}

/** Runs `work` as soon as the group's share has room. Returns `busy` if the group stalls first. */
async function runUnlessStalled<T>(
  group: Pick<Group<never, never>, "slots" | "progressAt">,
  work: () => Promise<T>,
  busy: T,
): Promise<T> {
  let state: "waiting" | "started" | "given up" = "waiting";
  const result = group.slots(() => {
    if (state === "given up") return busy;
    state = "started";
    return work();
  });
  if (group.slots.pendingCount === 0) return result;
  const stall = async (): Promise<T> => {
    for (let leftMs = timeToStallMs(group); leftMs > 0; leftMs = timeToStallMs(group)) {
      await sleep(leftMs);
      if (state === "started") return result;
    }
    state = "given up";
    return busy;
  };
  return Promise.race([result, stall()]);
}
