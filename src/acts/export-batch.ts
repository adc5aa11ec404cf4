import { selectVouchersOfBatch } from "../core/voucher/db/voucher-ranges.ts";
import { countCodesRead } from "./db/audit-entries.ts";
import type { IssuedVoucher } from "./issue-batch.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

/** Maximum number of vouchers that one query reads: less than a megabyte. */
const CHUNK_SIZE = 5_000;

export const CODES_HEAD = "id,code,serial\n";

/** A line of a CSV file of codes (RFC 4180). */
export function codesLine({ id, code, serial }: IssuedVoucher): string {
  return `${id},${/[",]/.test(code) ? `"${code.replaceAll('"', '""')}"` : code},${serial}\n`;
}

/**
 * Reads the codes of all vouchers of a batch in order of serials, including redeemed, voided and expired vouchers.
 * Commits the audit entry after the last chunk.
 * @param onChunk receives each chunk. If `exportBatch` rejects, discard the chunks, because the audit entry may be
 * missing.
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
        // Serials start at 1 and have no gaps, so the count equals the last serial that was read.
        const chunk = await selectVouchersOfBatch(tx, { batchId, after: count, limit: CHUNK_SIZE });
        if (chunk.length === 0) return count;
        count += chunk.length;
        await onChunk(chunk);
      }
    },
    { before: { codesExported: 0 }, after: (count) => ({ codesExported: count }) },
  );
}

/** A range of a batch's vouchers, from the first serial to the last. */
export interface Serials {
  from: number;
  to: number;
}

/**
 * Commits an audit entry about the reading of codes. A program reads page by page, so all reads of a batch by one key
 * in an hour share one entry.
 */
async function recordReading(ctx: AuditContext, batchId: string, codes: number): Promise<void> {
  const { by, osUser } = ctx.audited;
  const ofKey = by === "key" ? { readings: 1 } : null;
  await withAuditEntry(ctx, { type: "Batch", id: batchId }, async () => undefined, {
    before: { codesExported: 0 },
    after: () => ({ codesExported: codes, ...ofKey }),
    isCounted: ofKey && ((tx) => countCodesRead(tx, { batchId, keyId: osUser, codes })),
  });
}

/**
 * Reads codes. Commits the audit entry before the first chunk, because sending a code cannot be undone. Passes each
 * step to `run`, which provides a connection.
 */
export async function* readCodes(
  run: <T>(step: (ctx: AuditContext) => Promise<T>) => Promise<T>,
  batchId: string,
  { from, to }: Serials,
): AsyncGenerator<Awaited<ReturnType<typeof selectVouchersOfBatch>>> {
  await run((ctx) => recordReading(ctx, batchId, to - from + 1));
  for (let after = from - 1; after < to; after += CHUNK_SIZE) {
    const limit = Math.min(CHUNK_SIZE, to - after);
    yield await run(({ pool }) => selectVouchersOfBatch(pool, { batchId, after, limit }));
  }
}

/** The parts of a CSV file of codes. */
export async function* codesCsv(chunks: AsyncIterable<readonly IssuedVoucher[]>): AsyncGenerator<string> {
  yield CODES_HEAD;
  for await (const vouchers of chunks) yield vouchers.map(codesLine).join("");
}
