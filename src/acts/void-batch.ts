import { type BatchResult, changeBatch } from "./change-batch.ts";
import { voidActive, voidRefusal } from "./void-voucher.ts";
import type { AuditContext } from "./with-audit-entry.ts";

/** Voids every Active or Suspended voucher of a batch, like `voidVoucher`. Runs like {@link changeBatch}. */
export function voidBatch(
  ctx: AuditContext,
  batchId: string,
  reason: string | null,
  onRange?: (soFar: BatchResult<"voided">) => void,
): Promise<BatchResult<"voided">> {
  return changeBatch(
    ctx,
    batchId,
    {
      done: "voided",
      applies: (voucher, now) => voidRefusal(voucher, now) === null,
      write: (tx, vouchers, now) => voidActive(ctx, tx, vouchers, now, reason),
    },
    onRange,
  );
}
