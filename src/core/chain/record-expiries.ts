import type pg from "pg";
import type { RandomBytes } from "../../platform/base32.ts";
import type { Transaction } from "../../platform/db/pool.ts";
import { inTransaction, write } from "../../platform/db/transaction.ts";
import {
  advanceExpiry,
  endOwnExpiries,
  lockExpiredBatch,
  lockOwnExpiries,
  lockUnrecordedExpiries,
} from "../voucher/db/voucher-ranges.ts";
import { advanceChains, readLockedVouchers } from "../voucher/db/vouchers.ts";
import { voucherRefusal } from "../voucher/voucher.ts";
import { nextEvent } from "./chain.ts";
import { findDamaged } from "./db/broken-chains.ts";
import { appendEvents, openSinks, readPending } from "./seal-events.ts";

interface Deps {
  pool: pg.Pool;
  randomBytes: RandomBytes;
}

/** Maximum number of vouchers in one transaction. 500 events take about 50 ms. */
const VOUCHERS_MAX = 500;

/**
 * Appends an expired event to the chains of vouchers past `validUntil`, in order of serial, and returns their number.
 * Extended vouchers follow, in order of their own ends.
 *
 * The same transaction seals the events, so a million expiries need no seal jobs. Damaged and locked vouchers are
 * skipped. A batch's recorded serial stays below the first skipped locked voucher, so a later pass returns to it. No
 * decision depends on the events: every reader sees a voucher past `validUntil` as Expired.
 * @param untilMs the time on the monotonic clock after which no transaction starts. At least one transaction runs.
 * @param onlyBatchIds the batches to record. Null means all batches. This does not limit extended vouchers, which are
 * recorded for all batches.
 */
export async function recordExpiries(
  ctx: Deps,
  untilMs: number,
  onlyBatchIds: readonly string[] | null = null,
): Promise<number> {
  let count = 0;
  const incomplete: string[] = [];
  do {
    const range = await inTransaction(ctx.pool, (tx) => recordRange(ctx, tx, onlyBatchIds, incomplete));
    if (range === null) return count + (await recordExtended(ctx, untilMs));
    count += range.recorded;
    if (!range.complete) incomplete.push(range.batchId);
  } while (performance.now() < untilMs);
  return count;
}

/** Records the expiry of extended vouchers. Skips locked vouchers, to which a later pass returns. */
async function recordExtended(ctx: Deps, untilMs: number): Promise<number> {
  let count = 0;
  let isMore = true;
  while (isMore) {
    const { due, recorded } = await inTransaction(ctx.pool, (tx) => recordDue(ctx, tx));
    count += recorded;
    isMore = due === VOUCHERS_MAX && performance.now() < untilMs;
  }
  return count;
}

async function recordDue(ctx: Deps, tx: Transaction): Promise<{ due: number; recorded: number }> {
  const due = await lockOwnExpiries(tx, { limit: VOUCHERS_MAX });
  if (due.length === 0) return { due: 0, recorded: 0 };
  const damaged = await findDamaged(tx, due);
  const voucherIds = due.filter((id) => !damaged.includes(id));
  const recorded = voucherIds.length === 0 ? 0 : await recordLocked(ctx, tx, voucherIds);
  await endOwnExpiries(tx, due);
  return { due: due.length, recorded };
}

async function recordRange(
  ctx: Deps,
  tx: Transaction,
  onlyBatchIds: readonly string[] | null,
  exceptBatchIds: readonly string[],
): Promise<{ batchId: string; recorded: number; complete: boolean } | null> {
  const batch = await lockExpiredBatch(tx, { only: onlyBatchIds, except: exceptBatchIds });
  if (batch === null) return null;
  const { batchId, recordedTo } = batch;
  const last = Math.min(recordedTo + VOUCHERS_MAX, batch.voucherCount);
  const locked = await lockUnrecordedExpiries(tx, { batchId, after: recordedTo, last });
  const damaged = await findDamaged(tx, locked);
  const voucherIds = locked.filter((id) => !damaged.includes(id));
  const recorded = voucherIds.length === 0 ? 0 : await recordLocked(ctx, tx, voucherIds);
  const newRecordedTo = await advanceExpiry(tx, { batchId, after: recordedTo, last, damaged });
  return { batchId, recorded, complete: newRecordedTo === last };
}

async function recordLocked(ctx: Deps, tx: Transaction, voucherIds: readonly string[]): Promise<number> {
  const { now, vouchers } = await readLockedVouchers(tx, voucherIds);
  const expired = [...vouchers.values()].filter((voucher) => voucherRefusal(voucher, now) === "voucher_expired");
  const events = expired.map((voucher) => {
    const validUntil = voucher.validUntil.toISOString();
    return nextEvent(ctx.randomBytes, voucher, "voucher.instance.expired", now, { validUntil });
  });
  const { writes, advances } = appendEvents(await openSinks(tx), expired, await readPending(tx, expired), events);
  await write(tx, [...writes, ...advanceChains(advances)]);
  return expired.length;
}
