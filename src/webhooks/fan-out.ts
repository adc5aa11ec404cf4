import type pg from "pg";
import type { Logger } from "pino";
import type { FairSlots } from "../platform/batching/fair-slots.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { inTransaction, isDatabaseAway, isLockTimeout, waitForLocks } from "../platform/db/transaction.ts";
import {
  fanOutRows,
  lockTargetsOf,
  type OutboxRow,
  selectOutbox,
  selectOutboxOf,
  tryFanOut,
} from "./db/webhook-deliveries.ts";
import type { WebhookRequests } from "./job.ts";

/** How often a process empties the outbox. Milliseconds. */
const INTERVAL_MS = 1_000;
/**
 * Pause before the next attempt if the lock of a target or of the fan-out was not free. The process that has it may
 * have read the outbox before its newest rows were committed. Milliseconds.
 */
const RETRY_MS = 50;
/** Maximum number of outbox rows that one transaction reads. */
const ROWS_MAX = 500;
/** Maximum number of events that one transaction turns into deliveries, unless a single row has more. */
const EVENTS_MAX = 1_000;
/** Maximum wait for a lock, except for locked targets (LOCKED_WAIT_MS). Milliseconds. */
const LOCK_WAIT_MS = 5_000;
/**
 * Maximum wait for the locked targets of one organization, and the pause after a wait that failed. The wait is short
 * because the other organizations wait meanwhile. Milliseconds.
 */
const LOCKED_WAIT_MS = 50;
const LOCKED_PAUSE_MS = 250;
/** The name under which the fan-out takes turns in `webhookReads`. */
const OWNER = "fan-out";

interface Deps {
  pool: pg.Pool;
  /** The database connections of webhooks. The fan-out and the organizations take turns on them. */
  webhookReads: Pick<FairSlots, "run">;
  webhookRequests: WebhookRequests;
  log: Logger;
}

/** Turns outbox rows into deliveries every second after `start`, and at once after `nudge`: one process at a time. */
export class FanOut {
  readonly #ctx: Deps;
  #timer: NodeJS.Timeout | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #isRunning = false;
  readonly #locked = new LockedOrganizations();
  #nudged = false;
  #closed = false;

  constructor(ctx: Deps) {
    this.#ctx = ctx;
  }

  start(): void {
    this.#timer = setInterval(() => this.nudge(), INTERVAL_MS);
    this.nudge();
  }

  /** Empties the outbox now. If a run is in progress, empties it once more after that run. */
  nudge(): void {
    if (this.#closed) return;
    this.#nudged = true;
    if (!this.#isRunning) this.#running = this.#run();
  }

  /** Stops the timers and waits for the current run. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    clearTimeout(this.#retryTimer);
    await this.#running;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#nudged && !this.#closed) {
      this.#nudged = false;
      try {
        const outcome = await fanOut(this.#ctx, this.#locked);
        if (outcome === "busy") {
          clearTimeout(this.#retryTimer);
          this.#retryTimer = setTimeout(() => this.nudge(), RETRY_MS);
        }
        this.#nudged ||= outcome === "more";
      } catch (error) {
        const level = isDatabaseAway(error) || isLockTimeout(error) ? "debug" : "error";
        this.#ctx.log[level]({ err: error }, "the webhook outbox was not emptied; it will be tried again");
      }
    }
    // This must follow the last check of `nudged` without an `await`, so that a later nudge starts a run.
    this.#isRunning = false;
  }
}

/** Organizations with a locked target. Only their rows in the outbox wait. */
class LockedOrganizations {
  readonly #ids = new Set<string>();
  /** Before this time on the monotonic clock, no locked organization is tried. Milliseconds. */
  #waitAt = 0;

  get ids(): string[] {
    return [...this.#ids];
  }

  add(id: string): void {
    this.#ids.add(id);
  }

  /** Takes the organization that has waited for longest. Takes none during the pause after a locked target. */
  takeNext(): string | undefined {
    const [id] = this.#ids;
    if (id === undefined || performance.now() < this.#waitAt) return undefined;
    this.#ids.delete(id);
    return id;
  }

  /** Puts back an organization whose target stayed locked. */
  putBack(id: string): void {
    this.#ids.add(id);
    this.#waitAt = performance.now() + LOCKED_PAUSE_MS;
  }
}

/**
 * Turns the oldest rows of the outbox into deliveries, and requests a job for each target with due deliveries. Then
 * waits for the locked targets of one organization. Without this wait, a busy target could be locked at every attempt.
 */
async function fanOut(ctx: Deps, locked: LockedOrganizations): Promise<"done" | "more" | "busy"> {
  const taken = await runFanOut(ctx, (tx) => takeRows(tx, selectOutbox(tx, { except: locked.ids, limit: ROWS_MAX })));
  if (taken === null) return "busy";
  for (const id of taken.locked) locked.add(id);
  const next = locked.takeNext();
  const isFree = next === undefined || (await fanOutOne(ctx, next));
  if (!isFree) locked.putBack(next);
  if (taken.more || (next !== undefined && isFree)) return "more";
  return locked.ids.length > 0 ? "busy" : "done";
}

/** Turns rows of one organization into deliveries once its targets are free. Returns false if a target stays locked. */
async function fanOutOne(ctx: Deps, organizationId: string): Promise<boolean> {
  try {
    const taken = await runFanOut(ctx, async (tx) => {
      await waitForLocks(tx, LOCKED_WAIT_MS);
      await lockTargetsOf(tx, organizationId);
      return takeRows(tx, selectOutboxOf(tx, { organizationId, limit: ROWS_MAX }));
    });
    return taken?.locked.size === 0;
  } catch (error) {
    if (isLockTimeout(error)) return false;
    throw error;
  }
}

/** The result of a transaction that took rows from the outbox. */
interface Taken {
  /** Whether there may be more rows. */
  more: boolean;
  due: string[];
  locked: ReadonlySet<string>;
}

/** Returns null if another process holds the lock of the fan-out. */
async function runFanOut(
  { pool, webhookReads, webhookRequests }: Deps,
  take: (tx: Transaction) => Promise<Taken>,
): Promise<Taken | null> {
  const taken = await webhookReads.run(OWNER, () =>
    inTransaction(pool, async (tx) => {
      const [hasLock] = await Promise.all([tryFanOut(tx), waitForLocks(tx, LOCK_WAIT_MS)]);
      return hasLock ? take(tx) : null;
    }),
  );
  if (taken !== null) await webhookRequests.tryAdd(taken.due);
  return taken;
}

/** Turns rows into deliveries, starting with the first: at most EVENTS_MAX events, but at least one row. */
async function takeRows(tx: Transaction, reading: Promise<OutboxRow[]>): Promise<Taken> {
  const rows = await reading;
  if (rows.length === 0) return { more: false, due: [], locked: new Set() };
  let events = 0;
  const first = rows.filter((row, index) => {
    events += row.events;
    return index === 0 || events <= EVENTS_MAX;
  });
  const more = first.length < rows.length || rows.length === ROWS_MAX;
  return { more, ...(await fanOutRows(tx, first)) };
}
