import type pg from "pg";
import type { RandomBytes } from "../../platform/base32.ts";
import type { Transaction } from "../../platform/db/pool.ts";
import { inTransaction, write } from "../../platform/db/transaction.ts";
import {
  type DueSuspension,
  endSuspensionWalk,
  lockSuspension,
  readSuspensionReason,
  selectActiveOfBatch,
  selectDueSuspensions,
} from "../voucher/db/voucher-ranges.ts";
import { type LockedVoucher, lockFreeVouchers, suspendVouchers } from "../voucher/db/vouchers.ts";
import { lacksResumption, lacksSuspension, type Suspension } from "../voucher/voucher.ts";
import { type EventContent, nextEvent } from "./chain.ts";
import { changeLocked, type VoucherChange } from "./change-locked.ts";
import { appendEvents, openSinks, readPending } from "./seal-events.ts";

interface Deps {
  pool: pg.Pool;
  randomBytes: RandomBytes;
}

/** Maximum number of batches in one pass. The batches that wait for longest come first. */
const BATCHES_MAX = 100;
/** Maximum number of vouchers in one transaction. 500 events take about 50 ms. */
const VOUCHERS_MAX = 500;

/**
 * Adds the missing events to the histories of vouchers whose batch was suspended or resumed. Events are missing if the
 * call that suspended or resumed the batch ended early. Returns the number of events. Skips damaged vouchers, and
 * locked vouchers, to which a later pass returns. A suspended batch's vouchers are suspended even before they have the
 * event. After a resumption, each voucher stays suspended until it has the event.
 * @param untilMs the time on the monotonic clock after which no transaction starts. At least one transaction runs.
 */
export async function recordSuspensions(ctx: Deps, untilMs: number): Promise<number> {
  let count = 0;
  for (const batch of await selectDueSuspensions(ctx.pool, BATCHES_MAX)) {
    let isWhole = true;
    for (let after: number | null = 0; after !== null; ) {
      const position: number = after;
      const range = await inTransaction(ctx.pool, (tx) => recordRange(ctx, tx, batch, position));
      count += range.recorded;
      isWhole &&= range.isWhole;
      after = range.last;
      if (after !== null && performance.now() >= untilMs) return count;
    }
    if (isWhole) await endSuspensionWalk(ctx.pool, batch);
    if (performance.now() >= untilMs) return count;
  }
  return count;
}

/** Records the events of the next vouchers. `last`: the last serial, null at the end. `isWhole`: could lock all. */
async function recordRange(ctx: Deps, tx: Transaction, { batchId }: DueSuspension, after: number) {
  const nothing = { recorded: 0, isWhole: false, last: null };
  // While this transaction has the row's lock, no other call can suspend or resume the batch.
  const batch = await lockSuspension(tx, batchId);
  if (batch === null) return nothing;
  const change = batch.suspendedAt === null ? batchResumption(ctx) : batchSuspension(ctx);
  const { suspension } = change;
  const range = await selectActiveOfBatch(tx, { batchId, after, limit: VOUCHERS_MAX, endsBefore: null, suspension });
  const locked = await lockFreeVouchers(
    tx,
    range.map(({ id }) => id),
  );
  const { changed } = await changeLocked(tx, [...locked], change);
  const last = range.length < VOUCHERS_MAX ? null : (range.at(-1)?.serial ?? null);
  return { recorded: changed, isWhole: locked.size === range.length, last };
}

/** A change that adds missing events to histories with this state of `suspension`. */
type HistoryChange = VoucherChange & { suspension: Suspension | "none" };

/** Adds the suspended event to the histories that lack it after their batch was suspended. */
export function batchSuspension(ctx: Pick<Deps, "randomBytes">): HistoryChange {
  return {
    suspension: "none",
    applies: lacksSuspension,
    async write(tx, vouchers, now) {
      const events = await lackingSuspensions(ctx, tx, vouchers, now);
      await writeSuspension(tx, vouchers, events, "batch");
    },
  };
}

/** Adds the resumed event to the histories that lack it after their batch was resumed. */
export function batchResumption(ctx: Pick<Deps, "randomBytes">): HistoryChange {
  return {
    suspension: "batch",
    applies: lacksResumption,
    write: async (tx, vouchers, now) => resumeLocked(ctx, tx, vouchers, now, await readReasonOf(tx, vouchers)),
  };
}

/** The reason that was given when the batch of these vouchers was last suspended or resumed. */
const readReasonOf = (tx: Transaction, vouchers: readonly LockedVoucher[]) =>
  readSuspensionReason(tx, vouchers[0]?.id ?? "");

/** Resumes locked vouchers. The caller must have checked that each voucher may be resumed. */
export async function resumeLocked(
  { randomBytes }: Pick<Deps, "randomBytes">,
  tx: Transaction,
  vouchers: readonly LockedVoucher[],
  now: Date,
  reason: string | null,
): Promise<void> {
  const data = { reason: reason ?? undefined };
  const events = vouchers.map((voucher) => nextEvent(randomBytes, voucher, "voucher.instance.resumed", now, data));
  await writeSuspension(tx, vouchers, events, null);
}

/**
 * Makes the suspended events that locked vouchers lack although their batch is suspended. `since` in an event is the
 * time from which calls were refused because of it.
 */
export async function lackingSuspensions(
  { randomBytes }: Pick<Deps, "randomBytes">,
  tx: Transaction,
  vouchers: readonly LockedVoucher[],
  now: Date,
): Promise<EventContent[]> {
  const lacking = vouchers.filter(lacksSuspension);
  if (lacking.length === 0) return [];
  const reason = await readReasonOf(tx, lacking);
  return lacking.map((voucher) =>
    nextEvent(randomBytes, voucher, "voucher.instance.suspended", now, {
      reason,
      since: voucher.batchSuspendedAt?.toISOString(),
    }),
  );
}

/** Appends one event to each locked voucher's history, and sets the state of suspension in the voucher's row. */
export async function writeSuspension(
  tx: Transaction,
  vouchers: readonly LockedVoucher[],
  events: readonly EventContent[],
  suspension: Suspension | null,
): Promise<void> {
  const { writes, advances } = appendEvents(await openSinks(tx), vouchers, await readPending(tx, vouchers), events);
  await write(tx, [...writes, ...suspendVouchers(advances, suspension)]);
}
