import type pg from "pg";
import { selectIssueReferences } from "./db/issue-references.ts";

/** Adds to each batch its issue reference, or the text that replaced it in an erasure. Null if there is none. */
export async function withIssueReferences<Batch extends { id: string }>(
  { pool }: { pool: pg.Pool },
  batches: readonly Batch[],
): Promise<(Batch & { issueRef: string | null })[]> {
  const found = await selectIssueReferences(
    pool,
    batches.map(({ id }) => id),
  );
  const references = new Map(found.map(({ batchId, issueRef }) => [batchId, issueRef]));
  return batches.map((batch) => ({ ...batch, issueRef: references.get(batch.id) ?? null }));
}
