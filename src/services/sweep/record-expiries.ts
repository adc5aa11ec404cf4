import type pg from "pg";
import { openLogBatch } from "../../db/log-batches.ts";
import type { Transaction } from "../../db/pool.ts";
import { inTransaction, write } from "../../db/transaction.ts";
import {
  advanceChains,
  advanceExpiry,
  lockExpiredBatch,
  lockUnrecordedExpiries,
  readLockedVouchers,
} from "../../db/vouchers.ts";
import { nextEvent } from "../../domain/chain.ts";
import type { RandomBytes } from "../../domain/codes.ts";
import { finalRefusal } from "../../domain/voucher.ts";
import { advancesOf, appendSealed, headsOf, readPending, sealPending } from "../redeem/seal-events.ts";

interface Deps {
  pool: pg.Pool;
  randomBytes: RandomBytes;
}

/** Serials of a batch that one transaction covers. Writing 500 events takes some 50 ms. */
const RANGE = 500;

/**
 * Appends an expired event to the chains of vouchers past `validUntil`, in order of serial, and returns their number. Seals many at once,
 * so a million expiries make no seal jobs. Skips locked vouchers: their batch's mark stays before them, so a later pass returns. No
 * decision depends on this: every reader sees a voucher past `validUntil` as Expired.
 * @param only the batches to look at; null: all.
 */
export async function recordExpiries(
  ctx: Deps,
  untilMs: number,
  only: readonly string[] | null = null,
): Promise<number> {
  let count = 0;
  const incomplete: string[] = [];
  do {
    const range = await inTransaction(ctx.pool, (tx) => recordRange(ctx, tx, only, incomplete));
    if (range === null) return count;
    count += range.recorded;
    if (!range.complete) incomplete.push(range.batchId);
  } while (performance.now() < untilMs);
  return count;
}

async function recordRange(
  ctx: Deps,
  tx: Transaction,
  only: readonly string[] | null,
  except: readonly string[],
): Promise<{ batchId: string; recorded: number; complete: boolean } | null> {
  const batch = await lockExpiredBatch(tx, only, except);
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
  const batch = await openLogBatch(tx);
  const seals = sealPending(heads, batch, await readPending(tx, expired));
  const events = expired.map((voucher) => {
    const validUntil = voucher.validUntil.toISOString();
    return nextEvent(ctx.randomBytes, voucher, "voucher.instance.expired", now, { validUntil });
  });
  const appended = appendSealed(heads, batch, events);
  await write(tx, [...seals, ...appended, ...advanceChains(advancesOf(expired, heads)), ...batch.writes()]);
  return expired.length;
}
