import { arrayOf, integer, text } from "../../../platform/db/columns.ts";
import type { Queryable } from "../../../platform/db/pool.ts";
import { Statements } from "../../../platform/db/statements.ts";

export const sql = new Statements(new URL("./broken-chains.sql", import.meta.url));

export const countBrokenChains = sql.requiredValue("count_broken_chains", { broken: integer }, { limit: integer });
/**
 * Among locked vouchers, those whose chains accept no further event. The caller must leave them out, because a write to
 * such a chain makes the whole transaction fail.
 */
export const findDamaged = sql.values("find_damaged", { id: text }, { voucherId: arrayOf(text) });
export const markBrokenChains = sql.prepare("mark_broken_chains", { voucherId: arrayOf(text) });
const markWholeChains = sql.execute("mark_whole_chains", { after: text, last: text, broken: arrayOf(text) });

/** Records a check of the vouchers after `afterId` and up to `lastId`. All chains except `broken` are intact. */
export async function recordChainCheck(
  db: Queryable,
  range: { afterId: string; lastId: string },
  broken: readonly string[],
): Promise<void> {
  if (broken.length > 0) await db.query(markBrokenChains(broken));
  await markWholeChains(db, { after: range.afterId, last: range.lastId, broken });
}
