import type { LimitFunction } from "p-limit";
import type pg from "pg";
import type { Logger } from "pino";
import type { Transaction } from "../platform/db/pool.ts";
import { inTransaction, isDatabaseUnavailable, isLockTimeout, waitForLocks } from "../platform/db/transaction.ts";
import { fanOutRows, type OutboxRow, selectOutbox, tryFanOut } from "./db/webhook-deliveries.ts";
import type { WebhookRequests } from "./job.ts";

/** Interval at which a process empties the outbox. Milliseconds. */
const INTERVAL_MS = 1_000;
/**
 * Time until the next attempt if another process holds the lock. That process may not see the newest rows.
 * Milliseconds.
 */
const RETRY_MS = 50;
/** Outbox rows that one transaction reads. */
const ROWS_MAX = 500;
/** Events that one transaction turns into deliveries, each for up to 20 targets; one row may have more. */
const EVENTS_MAX = 1_000;
/** Longest wait for targets that are locked while attempts are recorded. Milliseconds. */
const LOCK_WAIT_MS = 5_000;

interface Deps {
  pool: pg.Pool;
  /** Limits the connections of webhooks. */
  webhookReads: LimitFunction;
  webhookRequests: WebhookRequests;
  log: Logger;
}

/**
 * Empties the outbox every second after `start`, and at once after `nudge`. Any number of processes may run it; a lock
 * lets one work at a time.
 */
export class FanOut {
  readonly #ctx: Deps;
  #timer: NodeJS.Timeout | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #nudged = false;
  #closed = false;

  constructor(ctx: Deps) {
    this.#ctx = ctx;
  }

  start(): void {
    this.#timer = setInterval(() => this.nudge(), INTERVAL_MS);
    this.nudge();
  }

  /** Empties the outbox now, or again after the current run. */
  nudge(): void {
    if (this.#closed) return;
    this.#nudged = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  /** Stops the timers and waits for the current run. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    clearTimeout(this.#retryTimer);
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#nudged && !this.#closed) {
      this.#nudged = false;
      try {
        const outcome = await fanOut(this.#ctx);
        if (outcome === "busy") {
          clearTimeout(this.#retryTimer);
          this.#retryTimer = setTimeout(() => this.nudge(), RETRY_MS);
        }
        this.#nudged ||= outcome === "more";
      } catch (error) {
        const level = isDatabaseUnavailable(error) || isLockTimeout(error) ? "debug" : "error";
        this.#ctx.log[level]({ err: error }, "the webhook outbox was not emptied; it will be tried again");
      }
    }
  }
}

/** Turns the oldest rows of the outbox into deliveries, and requests a job for each target with due deliveries. */
export async function fanOut(ctx: Deps): Promise<"done" | "more" | "busy"> {
  const { pool, webhookReads, webhookRequests } = ctx;
  const result = await webhookReads(() => inTransaction(pool, takeOutbox));
  if (result === null) return "busy";
  await webhookRequests.tryAdd(result.due);
  return result.more ? "more" : "done";
}

/** Returns null if another process holds the lock. */
async function takeOutbox(tx: Transaction): Promise<{ more: boolean; due: string[] } | null> {
  const [locked, , rows] = await Promise.all([
    tryFanOut(tx),
    waitForLocks(tx, LOCK_WAIT_MS),
    selectOutbox(tx, ROWS_MAX),
  ]);
  if (!locked) return null;
  if (rows.length === 0) return { more: false, due: [] };
  const taken = takeRows(rows);
  return { more: taken.length < rows.length || rows.length === ROWS_MAX, due: await fanOutRows(tx, taken) };
}

/** The first rows with at most EVENTS_MAX events, but at least one. */
function takeRows(rows: readonly OutboxRow[]): OutboxRow[] {
  let events = 0;
  return rows.filter((row, index) => {
    events += row.events;
    return index === 0 || events <= EVENTS_MAX;
  });
}
