import type { TreeHead } from "#tlog/checkpoint.ts";
import type { TileId } from "#tlog/merkle.ts";
import type { StoredTile } from "#tlog/tree.ts";
import { arrayOf, bigint, bytea, integer, orNull, type Row, smallint, text } from "../../platform/db/columns.ts";
import type { Queryable } from "../../platform/db/pool.ts";
import { columnsOf, type PreparedStatements, Statements } from "../../platform/db/statements.ts";

/**
 * Maximum number of waiting batches that are read at once, and maximum number of their leaves. Giving them positions
 * takes at most a third of a second.
 */
const WAITING_BATCHES_MAX = 4_096;
const WAITING_LEAVES_MAX = 65_536;

/** The stored tree, with the name of its log. */
export const TREE = {
  origin: text,
  size: bigint,
  root: bytea,
  /** The start time of the database server. Another or restored server has another start time. */
  server: text,
};
export type TlogTree = Row<typeof TREE>;

/** A batch whose leaves have no position in the tree yet. */
const WAITING_BATCH = { id: bigint, leaves: integer, hashes: bytea };
type WaitingBatch = Row<typeof WAITING_BATCH>;

export const sql = new Statements(new URL("./log-tree.sql", import.meta.url));

export const lockTlogTree = sql.row("lock_log_tree", TREE);
export const findTlogTree = sql.row("find_log_tree", TREE);
export const insertTlogTree = sql.execute("insert_log_tree", { origin: text, root: bytea });
export const countWaitingLeaves = sql.requiredValue("count_waiting_leaves", { leaves: bigint });
export const selectLostLeaves = sql.rows("select_lost_leaves", { firstIndex: bigint, leaves: bigint });
export const insertLostLeaves = sql.prepare("insert_lost_leaves", { firstIndex: bigint, leaves: bigint });
const selectSetAside = sql.values("select_batches_set_aside", { id: text }, { limit: integer });
const selectWaiting = sql.rows("select_waiting_batches", WAITING_BATCH, {
  batchesMax: integer,
  leavesMax: integer,
  after: bigint,
});
const placeTlogBatches = sql.prepare("place_log_batches", { id: arrayOf(bigint), firstIndex: arrayOf(bigint) });
const placeScatteredBatch = sql.prepare("place_scattered_batch", { id: bigint, places: arrayOf(bigint) });
const writeTlogBundles = sql.prepareAll("write_log_bundles", { index: bigint, hashes: bytea });
const writeTlogTiles = sql.prepareAll("write_log_tiles", { level: smallint, index: bigint, hashes: bytea });
const advanceTlogTree = sql.prepare("advance_log_tree", { sizeBefore: bigint, size: bigint, root: bytea });
const selectTiles = sql.rows(
  "select_log_tiles",
  { level: smallint, index: bigint, hashes: orNull(bytea) },
  { level: arrayOf(smallint), index: arrayOf(bigint) },
);

/** The ids of waiting batches that never get a position. As text, because they may be too large for a number. */
export function selectBatchesSetAside(db: Queryable, limit: number): Promise<string[]> {
  return selectSetAside(db, limit);
}

/** The next batches without a position, in id order, within both limits. */
export function selectWaitingBatches(tx: Queryable, after = 0): Promise<WaitingBatch[]> {
  return selectWaiting(tx, { batchesMax: WAITING_BATCHES_MAX, leavesMax: WAITING_LEAVES_MAX, after });
}

/** Statements that give batches their positions, in order, at the end of the locked tree with `size` leaves. */
export function placeBatches(batches: readonly WaitingBatch[], size: number): PreparedStatements {
  let next = size;
  const firsts = batches.map(({ leaves }) => {
    next += leaves;
    return next - leaves;
  });
  return [placeTlogBatches({ id: batches.map(({ id }) => id), firstIndex: firsts })];
}

/** Statements that give each leaf of waiting batches its own position in the locked tree. */
export function placeLeaves(batches: readonly { id: number; places: readonly number[] }[]): PreparedStatements {
  const isContiguous = (places: readonly number[]) => places.every((place, at) => place === (places[0] ?? 0) + at);
  const contiguous = batches.filter(({ places }) => isContiguous(places));
  const scattered = batches.filter(({ places }) => !isContiguous(places));
  return [
    placeTlogBatches({
      id: contiguous.map(({ id }) => id),
      firstIndex: contiguous.map(({ places }) => places[0] ?? 0),
    }),
    ...scattered.map(({ id, places }) => placeScatteredBatch({ id, places })),
  ];
}

/** Statements that write the grown tiles and the new head of the locked tree. */
export function growTree(before: TreeHead, grown: readonly StoredTile[], after: TreeHead): PreparedStatements {
  return [
    ...writeTlogBundles(grown.filter(({ level }) => level === 0)),
    ...writeTlogTiles(grown.filter(({ level }) => level > 0)),
    advanceTlogTree({ sizeBefore: before.size, size: after.size, root: after.root }),
  ];
}

/** Reads bundles (level 0) and tiles. Leaves out those that are not stored. */
export async function selectTlogTiles(db: Queryable, tiles: readonly TileId[]): Promise<StoredTile[]> {
  const rows = await selectTiles(db, columnsOf(tiles, "level", "index"));
  return rows.flatMap(({ level, index, hashes }) => (hashes === null ? [] : [{ level, index, hashes }]));
}
