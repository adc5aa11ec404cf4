import type { Advance } from "./act.ts";
import { type BatchResult, changeBatch, readBatchSize } from "./change-batch.ts";
import { voidActive, voidRefusal } from "./void-voucher.ts";
import type { AuditContext } from "./with-audit-entry.ts";

/**
 * Voids every Active or Suspended voucher of a batch, like `voidVoucher`. Runs like {@link changeBatch}.
 * @throws AppError `not_found`.
 */
export async function voidBatch(
  ctx: AuditContext,
  batchId: string,
  reason: string | null,
  onRange?: Advance,
): Promise<BatchResult<"voided">> {
  return changeBatch(
    ctx,
    { id: batchId, size: await readBatchSize(ctx, batchId) },
    {
      done: "voided",
      applies: (voucher, now) => voidRefusal(voucher, now) === null,
      write: (tx, vouchers, now) => voidActive(ctx, tx, vouchers, now, reason),
    },
    onRange,
  );
}
