import { selectVouchersOfBatch } from "../../db/voucher-ranges.ts";
import { type AuditContext, withAuditEntry } from "../audit/with-audit-entry.ts";
import type { IssuedVoucher } from "./issue-batch.ts";

/** Most vouchers that one query reads: less than a megabyte. */
const CHUNK_SIZE = 5_000;

/**
 * Reads the codes of all vouchers of a batch in order of serials, including vouchers that are redeemed, voided or expired. Commits the audit
 * entry after the last chunk.
 * @param onChunk receives each chunk. If `exportBatch` rejects, discard the chunks: the audit entry may be missing.
 * @returns the number of vouchers.
 */
export function exportBatch(
  ctx: AuditContext,
  batchId: string,
  onChunk: (vouchers: readonly IssuedVoucher[]) => Promise<void>,
): Promise<number> {
  return withAuditEntry(
    ctx,
    { type: "Batch", id: batchId },
    async (tx) => {
      let count = 0;
      for (;;) {
        // Serials start at 1 and have no gaps, so the count is the last serial that was read.
        const chunk = await selectVouchersOfBatch(tx, batchId, count, CHUNK_SIZE);
        if (chunk.length === 0) return count;
        count += chunk.length;
        await onChunk(chunk);
      }
    },
    { before: { codesExported: 0 }, after: (count) => ({ codesExported: count }) },
  );
}
