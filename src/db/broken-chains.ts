import { integer } from "./columns.ts";
import type { Queryable } from "./pool.ts";
import { execute, loadStatements, type PreparedStatements, prepare, readRequiredRow } from "./statements.ts";

export const sql = loadStatements(new URL("./broken-chains.sql", import.meta.url), {
  mark_broken_chains: {},
  mark_whole_chains: {},
  count_broken_chains: { broken: integer },
});

/** Records a check of the chains of the vouchers after `afterId` up to `lastId`. Those in `broken` are broken; all others are intact. */
export async function recordChainCheck(
  db: Queryable,
  range: { afterId: string; lastId: string },
  broken: readonly string[],
): Promise<void> {
  if (broken.length > 0) await execute(db, sql.mark_broken_chains, [broken]);
  await execute(db, sql.mark_whole_chains, [range.afterId, range.lastId, broken]);
}

/** A statement that records that chains are broken. */
export function markBrokenChains(voucherIds: readonly string[]): PreparedStatements[number] {
  return prepare(sql.mark_broken_chains, [voucherIds]);
}

/** How many chains were broken at their last check, counted up to `max`. */
export async function countBrokenChains(db: Queryable, max: number): Promise<number> {
  return (await readRequiredRow(db, sql.count_broken_chains, [max])).broken;
}
