import type { WorkerContext } from "../context.ts";
import type { Transaction } from "../db/pool.ts";
import { inTransaction, write } from "../db/transaction.ts";
import {
  advanceChains,
  advanceExpiry,
  type LockedVoucher,
  lockExpiredBatch,
  lockUnrecordedExpiries,
  readLockedVouchers,
} from "../db/vouchers.ts";
import { type EventContent, makeNonce } from "../domain/chain.ts";
import { finalRefusal } from "../domain/voucher.ts";
import { appendSealed, headsOf, movesOf, sealPending, selectUnsealed } from "./seal-events.ts";

type Deps = Pick<WorkerContext, "pool" | "randomBytes">;

/** Serials of a batch that one transaction covers; 500 events take some 50 ms. */
const RANGE = 500;

/**
 * Writes into the histories of vouchers past their `validUntil` that they have expired, batch by batch in the order of serials.
 * The events are sealed right here, many in one transaction: a million expiries make no million jobs. Passes over vouchers that
 * somebody else has locked; their batch's mark stays before them, so that a later pass comes back. Nothing reads this: a voucher
 * past its `validUntil` is Expired to everyone.
 * @returns how many expiries were recorded.
 */
export async function recordExpiries(ctx: Deps, untilMs: number): Promise<number> {
  let count = 0;
  const stuck: string[] = [];
  do {
    const range = await inTransaction(ctx.pool, (tx) => recordRange(ctx, tx, stuck));
    if (range === null) return count;
    count += range.recorded;
    if (!range.complete) stuck.push(range.batchId);
  } while (performance.now() < untilMs);
  return count;
}

async function recordRange(
  ctx: Deps,
  tx: Transaction,
  except: readonly string[],
): Promise<{ batchId: string; recorded: number; complete: boolean } | null> {
  const batch = await lockExpiredBatch(tx, except);
  if (batch === null) return null;
  const { batchId, recordedTo } = batch;
  const last = Math.min(recordedTo + RANGE, batch.voucherCount);
  const voucherIds = await lockUnrecordedExpiries(tx, batchId, recordedTo, last);
  const recorded = voucherIds.length === 0 ? 0 : await recordLocked(ctx, tx, voucherIds);
  const mark = await advanceExpiry(tx, batchId, recordedTo, last);
  return { batchId, recorded, complete: mark === last };
}

async function recordLocked(ctx: Deps, tx: Transaction, voucherIds: readonly string[]): Promise<number> {
  const { now, vouchers } = await readLockedVouchers(tx, voucherIds);
  const expired = [...vouchers.values()].filter((voucher) => finalRefusal(voucher, now) === "voucher_expired");
  const heads = headsOf(expired);
  const seals = sealPending(heads, await selectUnsealed(tx, expired));
  const events = appendSealed(
    heads,
    expired.map((voucher) => expiredEvent(ctx, voucher, now)),
  );
  await write(tx, [...seals, ...events, ...advanceChains(movesOf(expired, heads))]);
  return expired.length;
}

function expiredEvent(ctx: Deps, voucher: LockedVoucher, now: Date): EventContent {
  return {
    voucherId: voucher.id,
    sequence: voucher.lastSequence + 1,
    eventType: "voucher.instance.expired",
    occurredAt: now,
    actorConnectedId: null,
    actorIsEmployee: null,
    data: {
      nonce: makeNonce(ctx.randomBytes),
      voucherCode: voucher.code,
      serial: voucher.serial,
      validUntil: voucher.validUntil.toISOString(),
    },
  };
}
