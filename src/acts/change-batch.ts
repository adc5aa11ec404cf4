import { findBatchSize } from "../core/catalog/db/catalog.ts";
import { changeLocked, type VoucherChange } from "../core/chain/change-locked.ts";
import { selectActiveOfBatch } from "../core/voucher/db/voucher-ranges.ts";
import type { Suspension } from "../core/voucher/voucher.ts";
import { AppError } from "../platform/api/errors.ts";
import { usePlansOfService } from "../platform/db/pool.ts";
import type { Advance } from "./act.ts";
import { type Lock, lockBusyLast } from "./lock-busy-last.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

/**
 * Number of vouchers that one transaction changes. The transaction locks their rows for some 150 ms, and its events fit
 * into one leaf batch of the transparency log.
 */
const RANGE = 1_000;

/** A change of all vouchers of a batch that are neither redeemed nor voided. */
export interface BatchChange<Done extends string> extends VoucherChange {
  /** The name of the field that has the number of changed vouchers. */
  done: Done;
  /** Excludes vouchers that end at this time or later. */
  endsBefore?: Date;
  /** Limits the change to vouchers with this state of suspension in their histories. */
  suspension?: Suspension | "none";
}

/** How many vouchers a run has changed, and to how many the change did not apply (`alreadyFinal`). */
export type BatchResult<Done extends string> = Record<Done, number> & {
  alreadyFinal: number;
  /** The number of vouchers that were skipped, because their chains accept no further event. Absent for 0. */
  damaged?: number;
};

/** How many vouchers of a batch of this size a run has not reached yet. */
export function remainingOf(size: number, { damaged = 0, ...counts }: BatchResult<string>): number {
  return size - damaged - Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** Returns the number of a batch's vouchers. @throws AppError `not_found`. */
export async function readBatchSize(ctx: Pick<AuditContext, "pool">, batchId: string): Promise<number> {
  const size = await findBatchSize(ctx.pool, batchId);
  if (size === null) throw new AppError("not_found", `There is no batch ${batchId}.`);
  return size;
}

/**
 * Changes the vouchers of a batch, range by range in order of serials. Each range is one transaction with its own audit
 * entry, and seals its own events. So a run can end at any point, and the next run changes the rest. Damaged vouchers
 * are skipped. Vouchers that another call has locked come last. With `endBy`, begins no range after that time, and
 * skips a voucher whose lock is not granted.
 * @param onRange receives the counts so far. If it throws, the run ends with that error.
 * @throws DatabaseError 55P03 when a lock is not granted in time: the lock of another run on the batch or, without
 * `endBy`, the lock of a voucher.
 */
export async function changeBatch<Done extends string>(
  ctx: AuditContext,
  { id: batchId, size }: { id: string; size: number },
  change: BatchChange<Done>,
  onRange: Advance = () => undefined,
): Promise<BatchResult<Done>> {
  const { done, endsBefore = null, suspension = null } = change;
  const total = { changed: 0, alreadyFinal: 0, damaged: 0 };
  const report = () => {
    const { changed, alreadyFinal, damaged } = total;
    return { [done]: changed, alreadyFinal, ...(damaged > 0 && { damaged }) } as BatchResult<Done>;
  };
  const counted = `vouchers${done.charAt(0).toUpperCase()}${done.slice(1)}`;
  const changeRange = async (voucherIds: readonly string[], lock: Lock): Promise<Set<string>> => {
    const { locked, changed, damaged } = await withAuditEntry(
      ctx,
      { type: "Batch", id: batchId },
      async (tx) => {
        await usePlansOfService(tx);
        const locked = await lock(tx, voucherIds);
        return { locked, ...(await changeLocked(tx, [...locked], change)) };
      },
      { before: { [counted]: 0 }, after: (range) => ({ [counted]: range.changed }) },
    );
    total.changed += changed;
    total.alreadyFinal += locked.size - changed - damaged;
    total.damaged += damaged;
    onRange(total.changed + total.alreadyFinal + total.damaged, size, report());
    return locked;
  };

  const findRanges = async function* () {
    for (let after = 0; after < size; ) {
      const range = await selectActiveOfBatch(ctx.pool, { batchId, after, limit: RANGE, endsBefore, suspension });
      // Serials have no gaps, so vouchers missing from the range are those to which the change does not apply. A range
      // that is not full is the last one.
      const last = range.length < RANGE ? size : (range.at(-1)?.serial ?? size);
      total.alreadyFinal += last - after - range.length;
      after = last;
      if (range.length > 0) yield range.map(({ id }) => id);
    }
  };
  await lockBusyLast(ctx, findRanges(), changeRange);
  return report();
}
