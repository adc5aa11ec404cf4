import { selectVouchersOfBatch } from "../../db/vouchers.ts";
import type { IssuedVoucher } from "./issue-batch.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

/** Vouchers read at once: less than a megabyte. */
const CHUNK_SIZE = 5_000;

/**
 * Reads the codes of a batch again, in order of serials, also of vouchers that are redeemed, void or expired. The audit entry is committed after the last one.
 * @param onChunk receives every chunk. The export counts only after this function has returned.
 * @returns how many vouchers there are.
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
        // Serials have no gaps.
        const chunk = await selectVouchersOfBatch(tx, batchId, count, CHUNK_SIZE);
        if (chunk.length === 0) return count;
        count += chunk.length;
        await onChunk(chunk);
      }
    },
    { before: { codesExported: 0 }, after: (count) => ({ codesExported: count }) },
  );
}
