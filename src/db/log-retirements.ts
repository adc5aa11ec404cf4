import type { TreeHead } from "../../packages/tlog/src/checkpoint.ts";
import { bigint, type Row, text, timestamptz } from "./columns.ts";
import { type LogTree, TREE } from "./log-tree.ts";
import type { Queryable, Transaction } from "./pool.ts";
import { loadStatements, type PreparedStatements, prepare, readRow, readRows } from "./statements.ts";

const RETIREMENT = {
  origin: text,
  nextOrigin: text,
  size: bigint,
  lastNote: text,
  servedNote: text,
  policy: text,
  reason: text,
  retiredAt: timestamptz,
};

export const sql = loadStatements(new URL("./log-retirements.sql", import.meta.url), {
  select_log_retirements: RETIREMENT,
  lock_log_to_retire: TREE,
  insert_log_retirement: {},
  rename_log_tree: {},
  delete_published_of_retired: {},
  delete_witness_sizes: {},
});

/** A retired log. The next log begins with its `size` leaves, followed by the SHA-256 of `lastNote` as a leaf. */
export type LogRetirement = Row<typeof RETIREMENT>;

/** The logs that were retired, the oldest first. */
export function selectLogRetirements(db: Queryable): Promise<LogRetirement[]> {
  return readRows(db, sql.select_log_retirements, []);
}

/** Locks the tree against every other use; null when it is in use, or when there is no log. */
export function lockLogToRetire(tx: Transaction): Promise<LogTree | null> {
  return readRow(tx, sql.lock_log_to_retire, []);
}

/** Statements that record the end of the locked log and give its tree, unchanged, to the next log. */
export function writeRetirement(
  { size, root }: TreeHead,
  retirement: Omit<LogRetirement, "size" | "retiredAt">,
): PreparedStatements {
  const { origin, nextOrigin, lastNote, servedNote, policy, reason } = retirement;
  return [
    prepare(sql.insert_log_retirement, [origin, nextOrigin, size, root, lastNote, servedNote, policy, reason]),
    prepare(sql.rename_log_tree, [origin, nextOrigin]),
    prepare(sql.delete_published_of_retired, []),
    prepare(sql.delete_witness_sizes, []),
  ];
}
