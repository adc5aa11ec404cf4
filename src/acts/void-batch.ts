import { findBatchSize } from "../core/catalog/db/catalog.ts";
import { findDamaged } from "../core/chain/db/broken-chains.ts";
import { selectActiveOfBatch } from "../core/voucher/db/voucher-ranges.ts";
import { readLockedVouchers } from "../core/voucher/db/vouchers.ts";
import { finalRefusal } from "../core/voucher/voucher.ts";
import { AppError } from "../platform/api/errors.ts";
import { type Transaction, usePlansOfService } from "../platform/db/pool.ts";
import { type Lock, lockBusyLast } from "./lock-busy-last.ts";
import { voidActive } from "./void-voucher.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

/**
 * Vouchers voided in one transaction. It keeps their rows locked for some 150 ms, and its events fit into one batch of
 * leaves.
 */
const RANGE = 1_000;

/** How many vouchers a run has voided, and how many were redeemed, voided or expired before it reached them. */
export interface BatchVoidResult {
  voided: number;
  alreadyFinal: number;
  /** How many vouchers it left out, because their chains accept no further event. Absent without any. */
  damaged?: number;
}

/** How many vouchers of a batch of this size a run has not reached. */
export function remainingOf(size: number, { voided, alreadyFinal, damaged = 0 }: BatchVoidResult): number {
  return size - voided - alreadyFinal - damaged;
}

/** Returns the number of a batch's vouchers. @throws AppError `not_found`. */
export async function readBatchSize(ctx: Pick<AuditContext, "pool">, batchId: string): Promise<number> {
  const size = await findBatchSize(ctx.pool, batchId);
  if (size === null) throw new AppError("not_found", `There is no batch ${batchId}.`);
  return size;
}

/**
 * Voids every Active voucher of a batch as `voidVoucher` does, range by range in order of serials. Each range is one
 * transaction that has its own audit entry and seals its own events. A run can therefore end at any point, and the next
 * run voids the rest. Damaged vouchers are left out, and those that another call has locked come last. A run with an
 * `endBy` begins no range after that time, and skips a voucher whose lock it does not get.
 * @param onRange receives the counts so far. If it throws, the run ends with that error.
 * @throws AppError `not_found`; DatabaseError 55P03 when a lock is not granted in time: of another run on the batch or,
 * without `endBy`, of a voucher.
 */
export async function voidBatch(
  ctx: AuditContext,
  batchId: string,
  reason: string | null,
  onRange: (soFar: BatchVoidResult) => void = () => undefined,
): Promise<BatchVoidResult> {
  const size = await readBatchSize(ctx, batchId);
  const total: BatchVoidResult = { voided: 0, alreadyFinal: 0 };
  const voidRange = async (voucherIds: readonly string[], lock: Lock): Promise<Set<string>> => {
    const { locked, voided, damaged } = await withAuditEntry(
      ctx,
      { type: "Batch", id: batchId },
      async (tx) => {
        await usePlansOfService(tx);
        const locked = await lock(tx, voucherIds);
        return { locked, ...(await voidLocked(ctx, tx, [...locked], reason)) };
      },
      { before: { vouchersVoided: 0 }, after: (range) => ({ vouchersVoided: range.voided }) },
    );
    total.voided += voided;
    total.alreadyFinal += locked.size - voided - damaged;
    if (damaged > 0) total.damaged = (total.damaged ?? 0) + damaged;
    onRange({ ...total });
    return locked;
  };

  const findRanges = async function* () {
    for (let after = 0; after < size; ) {
      const range = await selectActiveOfBatch(ctx.pool, { batchId, after, limit: RANGE });
      // Serials have no gaps, so skipped vouchers are in a final status. A short range is the last one.
      const last = range.length < RANGE ? size : (range.at(-1)?.serial ?? size);
      total.alreadyFinal += last - after - range.length;
      after = last;
      if (range.length > 0) yield range.map(({ id }) => id);
    }
  };
  await lockBusyLast(ctx, findRanges(), voidRange);
  return total;
}

/** Voids the Active vouchers among the given ones, except damaged ones. Returns the numbers of both. */
async function voidLocked(
  ctx: AuditContext,
  tx: Transaction,
  voucherIds: readonly string[],
  reason: string | null,
): Promise<{ voided: number; damaged: number }> {
  if (voucherIds.length === 0) return { voided: 0, damaged: 0 };
  const { now, vouchers } = await readLockedVouchers(tx, voucherIds);
  const active = [...vouchers.values()].filter((voucher) => finalRefusal(voucher, now) === null);
  const ids = active.map(({ id }) => id);
  const damaged = await findDamaged(tx, ids);
  const whole = active.filter(({ id }) => !damaged.includes(id));
  if (whole.length > 0) await voidActive(ctx, tx, whole, now, reason);
  return { voided: whole.length, damaged: damaged.length };
}
