import type { TreeHead } from "#tlog/checkpoint.ts";
import { bigint, bytea, type Row, text, timestamptz } from "../../platform/db/columns.ts";
import { type PreparedStatements, Statements } from "../../platform/db/statements.ts";
import { TREE } from "./log-tree.ts";

/** A retired log. The next log begins with its `size` leaves, followed by the SHA-256 of `lastNote` as a leaf. */
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
export type TlogRetirement = Row<typeof RETIREMENT>;

export const sql = new Statements(new URL("./log-retirements.sql", import.meta.url));

export const selectTlogRetirements = sql.rows("select_log_retirements", RETIREMENT);
export const lockTlogToRetire = sql.row("lock_log_to_retire", TREE);
const insertTlogRetirement = sql.prepare("insert_log_retirement", {
  origin: text,
  nextOrigin: text,
  size: bigint,
  root: bytea,
  lastNote: text,
  servedNote: text,
  policy: text,
  reason: text,
});
const renameTlogTree = sql.prepare("rename_log_tree", { origin: text, nextOrigin: text });
const deletePublishedOfRetired = sql.prepare("delete_published_of_retired");
const deleteWitnessSizes = sql.prepare("delete_witness_sizes");

/** Statements that record the end of the locked log and give its tree, unchanged, to the next log. */
export function writeRetirement(
  { size, root }: TreeHead,
  retirement: Omit<TlogRetirement, "size" | "retiredAt">,
): PreparedStatements {
  const { origin, nextOrigin, lastNote, servedNote, policy, reason } = retirement;
  return [
    insertTlogRetirement({ origin, nextOrigin, size, root, lastNote, servedNote, policy, reason }),
    renameTlogTree({ origin, nextOrigin }),
    deletePublishedOfRetired(),
    deleteWitnessSizes(),
  ];
}
