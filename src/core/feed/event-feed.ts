import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import type { Logger } from "pino";
import type { DatabaseFence } from "../../platform/db/database-fence.ts";
import { isDatabaseAway } from "../../platform/db/transaction.ts";
import type { Bulkhead, Requester } from "../callers/bulkhead.ts";
import { countNextEvents, type FeedEnd, findFeedEnd, moveFeed } from "./db/feed.ts";

/** How often a process looks for new events while calls wait. Milliseconds. */
const LOOK_EVERY_MS = 250;
/** Minimum interval at which a process moves the feed's end forward. Milliseconds. */
const MOVE_EVERY_MS = 100;
/** Time without a move after which the next read moves the feed's end forward several times. Milliseconds. */
const PAUSE_MS = 1_000;
/** Number of moves after a pause, and the time between two of them, in which short transactions end. Milliseconds. */
const [MOVES_AFTER_PAUSE, MOVE_AGAIN_MS] = [3, 20];
/** Maximum number of events that one search reads. If there are more, each waiting call searches for its own events. */
const LOOK_EVENTS_MAX = 5_000;

/** The requester of a search for all organizations, without a signal, because the search serves several callers. */
const ALL_ORGANIZATIONS = { organizationId: "" };

interface Deps {
  pool: pg.Pool;
  deployment: Pick<DatabaseFence, "clock">;
  partnerCalls: Bulkhead<"organization">;
  log: Logger;
}

/**
 * The end of the feed, and the calls that wait for an event after it. Transactions take ids for their leaf batches from
 * a sequence, and the feed has the order of these ids. The feed ends before the first id that an open transaction has
 * taken. However many calls wait, the process searches for new events with one statement at a time, and then wakes the
 * calls of the organizations that have new events.
 */
export class EventFeed {
  readonly #ctx: Deps;
  /** The functions that wake the waiting calls of each organization. */
  readonly #waiting = new Map<string, Set<(after: number | null) => void>>();
  readonly #reads = new Map<string, Promise<unknown>>();
  /** The last slot in which a search has looked for events. A slot is an event's position in the feed. */
  #lookedTo = 0;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;
  #looking: Promise<void> = Promise.resolve();
  #moving: { moved: Promise<void>; startedAt: number } | undefined;
  #closed = false;

  constructor(ctx: Deps) {
    this.#ctx = ctx;
  }

  /** Moves the end of the feed forward, at most ten times a second, and reads it on a connection of the requester. */
  async readEnd(requester: Requester<"organization">): Promise<FeedEnd> {
    const { pool, partnerCalls } = this.#ctx;
    const now = performance.now();
    const pausedMs = now - (this.#moving?.startedAt ?? Number.NEGATIVE_INFINITY);
    if (this.#moving === undefined || pausedMs > MOVE_EVERY_MS) {
      const moving = { moved: this.#move(pausedMs > PAUSE_MS ? MOVES_AFTER_PAUSE : 1), startedAt: now };
      this.#moving = moving;
      moving.moved.catch(() => {
        if (this.#moving === moving) this.#moving = undefined;
      });
    }
    await this.#moving.moved;
    return partnerCalls(requester, () => findFeedEnd(pool));
  }

  /**
   * Waits for an event of the organization after this position (slot), without using a connection. Returns the position
   * after which to read, the same for calls that wake together. Null if the caller has disconnected, the time is over
   * or the process closes.
   */
  async waitForEvents(
    { organizationId, signal }: Requester<"organization">,
    slot: number,
    maxMs: number,
  ): Promise<number | null> {
    if (this.#closed || signal?.aborted) return null;
    if (this.#waiting.size === 0) this.#lookedTo = slot;
    if (slot < this.#lookedTo) return slot;
    const { promise, resolve } = Promise.withResolvers<number | null>();
    const ofOrganization = this.#waiting.get(organizationId) ?? new Set();
    this.#waiting.set(organizationId, ofOrganization.add(resolve));
    this.#timer ??= setInterval(() => this.#look(), LOOK_EVERY_MS);
    const end = () => resolve(null);
    const late = setTimeout(end, maxMs);
    signal?.addEventListener("abort", end);
    const after = await promise;
    clearTimeout(late);
    signal?.removeEventListener("abort", end);
    ofOrganization.delete(resolve);
    if (ofOrganization.size === 0 && this.#waiting.get(organizationId) === ofOrganization)
      this.#waiting.delete(organizationId);
    if (this.#waiting.size === 0) this.#rest();
    return after;
  }

  /** Shares the result of a read that already runs, because one event may wake a thousand calls with the same read. */
  share<T>(key: string, read: () => Promise<T>): Promise<T> {
    const reading = (this.#reads.get(key) as Promise<T> | undefined) ?? read().finally(() => this.#reads.delete(key));
    this.#reads.set(key, reading);
    return reading;
  }

  /** The number of calls that wait. */
  get waiting(): number {
    return [...this.#waiting.values()].reduce((total, { size }) => total + size, 0);
  }

  /** Ends the waiting calls. Later calls do not wait. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#rest();
    this.#wake([...this.#waiting.keys()], null);
    await this.#looking;
  }

  /**
   * Moves the end of the feed. A move makes `completeUntil` the time of the move before it. So after a pause, one move
   * would set it to the time at which the pause began.
   */
  async #move(times: number): Promise<void> {
    const { pool, deployment, partnerCalls } = this.#ctx;
    for (let time = 1; time <= times; time++) {
      if (time > 1) await sleep(MOVE_AGAIN_MS);
      await partnerCalls(ALL_ORGANIZATIONS, async () => {
        await deployment.clock.ready();
        await moveFeed(pool, deployment.clock.steadyNow());
      });
    }
  }

  #rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #wake(organizationIds: readonly string[], after: number | null): void {
    for (const id of organizationIds) for (const resolve of this.#waiting.get(id) ?? []) resolve(after);
  }

  /** Looks for events after those of the last search. Does nothing while a search is running. */
  #look(): void {
    if (!this.#isLooking) this.#looking = this.#findNew();
  }

  async #findNew(): Promise<void> {
    this.#isLooking = true;
    try {
      const { lastSlot } = await this.readEnd(ALL_ORGANIZATIONS);
      if (lastSlot <= this.#lookedTo) return;
      const range = { afterSlot: this.#lookedTo, lastSlot, scanned: LOOK_EVENTS_MAX };
      const found = await this.#ctx.partnerCalls(ALL_ORGANIZATIONS, () => countNextEvents(this.#ctx.pool, range));
      this.#lookedTo = lastSlot;
      const isWhole = found.reduce((total, { events }) => total + events, 0) < LOOK_EVENTS_MAX;
      this.#wake(isWhole ? found.map((one) => one.organizationId) : [...this.#waiting.keys()], range.afterSlot);
    } catch (error) {
      const level = isDatabaseAway(error) ? "debug" : "warn";
      this.#ctx.log[level]({ err: error }, "new events were not looked for; they will be looked for again");
    } finally {
      this.#isLooking = false;
    }
  }
}
