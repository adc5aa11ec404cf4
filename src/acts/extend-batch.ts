import { extendBatchRow, findLineage } from "../core/catalog/db/catalog.ts";
import { decideExtension } from "../core/voucher/voucher.ts";
import type { Advance } from "./act.ts";
import { assertUpgraded } from "./assert-upgraded.ts";
import { type BatchResult, changeBatch, readBatchSize, remainingOf } from "./change-batch.ts";
import { ENDS_SCHEMA, extendLocked, tooEarly } from "./extend-voucher.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

/**
 * Gives every Active or Expired voucher of a batch a later end, like `extendById`. Vouchers that already end at this
 * time or later are not changed. Runs like {@link changeBatch}. After all vouchers, the batch itself gets the new end.
 * Its windows end with the batch at the latest. A repeat changes nothing.
 * @throws InvalidValues for an end before the batch's end; AppError `not_found`; `unavailable` during an upgrade.
 */
export async function extendBatch(
  ctx: AuditContext,
  batchId: string,
  validUntil: Date,
  reason: string | null,
  onRange?: Advance,
): Promise<BatchResult<"extended">> {
  const size = await readBatchSize(ctx, batchId);
  const present = (await findLineage(ctx.pool, batchId))?.validUntil;
  if (present && validUntil < present) throw tooEarly(present);
  const result = await changeBatch(
    ctx,
    { id: batchId, size },
    {
      done: "extended",
      endsBefore: validUntil,
      applies: (voucher, now) => decideExtension(voucher, validUntil, now).kind === "extended",
      async write(tx, vouchers, now) {
        await assertUpgraded(tx, ENDS_SCHEMA, "unavailable");
        await extendLocked(ctx, tx, vouchers, now, validUntil, reason);
      },
    },
    onRange,
  );
  if (remainingOf(size, result) === 0) {
    await withAuditEntry(ctx, { type: "Batch", id: batchId }, (tx) => extendBatchRow(tx, { id: batchId, validUntil }));
  }
  return result;
}
