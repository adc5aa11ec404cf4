import type { TreeHead } from "../../packages/tlog/src/checkpoint.ts";
import type { TileId } from "../../packages/tlog/src/merkle.ts";
import type { StoredTile } from "../../packages/tlog/src/tree.ts";
import { bigint, bytea, integer, orNull, type Row, smallint, text } from "./columns.ts";
import type { Queryable, Transaction } from "./pool.ts";
import {
  columnsOf,
  execute,
  loadStatements,
  type PreparedStatements,
  prepare,
  readRequiredRow,
  readRow,
  readRows,
} from "./statements.ts";

/** Most waiting batches, and most of their leaves, that are read at once. Giving them places takes a third of a second at most. */
const WAITING_BATCHES_MAX = 4_096;
const WAITING_LEAVES_MAX = 65_536;

/** The tree as it is stored, with the name of its log. */
export const TREE = {
  origin: text,
  size: bigint,
  root: bytea,
  /** The start time of the database server. Another or restored server has another one. */
  server: text,
};

export const sql = loadStatements(new URL("./log-tree.sql", import.meta.url), {
  lock_log_tree: TREE,
  find_log_tree: TREE,
  insert_log_tree: {},
  select_waiting_batches: { id: bigint, leaves: integer, hashes: bytea },
  place_log_batches: {},
  place_scattered_batch: {},
  count_waiting_leaves: { leaves: bigint },
  write_log_bundles: {},
  write_log_tiles: {},
  advance_log_tree: {},
  select_lost_leaves: { firstIndex: bigint, leaves: bigint },
  insert_lost_leaves: {},
  select_log_tiles: { level: smallint, index: bigint, hashes: orNull(bytea) },
});

export type LogTree = Row<typeof TREE>;

/** A batch whose leaves have no place in the tree yet. */
type WaitingBatch = Row<typeof sql.select_waiting_batches.columns>;

/** Locks the tree; null when another transaction has locked it, or when there is no log. */
export function lockLogTree(tx: Transaction): Promise<LogTree | null> {
  return readRow(tx, sql.lock_log_tree, []);
}

/** The tree, or null when there is no log. */
export function findLogTree(db: Queryable): Promise<LogTree | null> {
  return readRow(db, sql.find_log_tree, []);
}

/** Inserts the empty tree of a new log. */
export async function insertLogTree(tx: Transaction, origin: string, emptyRoot: Uint8Array): Promise<void> {
  await execute(tx, sql.insert_log_tree, [origin, emptyRoot]);
}

/** The next batches without a place, in order of their ids, within both limits. */
export function selectWaitingBatches(tx: Queryable, after: WaitingBatch["id"] = 0): Promise<WaitingBatch[]> {
  return readRows(tx, sql.select_waiting_batches, [WAITING_BATCHES_MAX, WAITING_LEAVES_MAX, after]);
}

/** Statements that give batches their places at the end of the locked tree, in order. `size` is the tree's current size. */
export function placeBatches(batches: readonly WaitingBatch[], size: number): PreparedStatements {
  let next = size;
  const firsts = batches.map(({ leaves }) => {
    next += leaves;
    return next - leaves;
  });
  return [prepare(sql.place_log_batches, [batches.map(({ id }) => id), firsts])];
}

/** Statements that give batches of the locked tree a place for each of their leaves. */
export function placeLeaves(batches: readonly { id: number; places: readonly number[] }[]): PreparedStatements {
  const isContiguous = (places: readonly number[]) => places.every((place, at) => place === (places[0] ?? 0) + at);
  const contiguous = batches.filter(({ places }) => isContiguous(places));
  const scattered = batches.filter(({ places }) => !isContiguous(places));
  return [
    prepare(sql.place_log_batches, [contiguous.map(({ id }) => id), contiguous.map(({ places }) => places[0] ?? 0)]),
    ...scattered.map(({ id, places }) => prepare(sql.place_scattered_batch, [id, places])),
  ];
}

/** How many leaves wait for their place. */
export async function countWaitingLeaves(db: Queryable): Promise<number> {
  return (await readRequiredRow(db, sql.count_waiting_leaves, [])).leaves;
}

/** Statements that write the tiles that have grown, and the locked tree's new head. */
export function growTree(before: TreeHead, grown: readonly StoredTile[], after: TreeHead): PreparedStatements {
  const bundles = grown.filter(({ level }) => level === 0);
  const tiles = grown.filter(({ level }) => level > 0);
  return [
    prepare(sql.write_log_bundles, columnsOf(bundles, "index", "hashes")),
    prepare(sql.write_log_tiles, columnsOf(tiles, "level", "index", "hashes")),
    prepare(sql.advance_log_tree, [before.size, after.size, after.root]),
  ];
}

/** Bundles (level 0) and tiles, without those that do not exist. */
export async function selectLogTiles(db: Queryable, tiles: readonly TileId[]): Promise<StoredTile[]> {
  const rows = await readRows(db, sql.select_log_tiles, columnsOf(tiles, "level", "index"));
  return rows.flatMap(({ level, index, hashes }) => (hashes === null ? [] : [{ level, index, hashes }]));
}

/** The leaves that were recovered after their events had been lost. */
export function selectLostLeaves(db: Queryable): Promise<{ firstIndex: number; leaves: number }[]> {
  return readRows(db, sql.select_lost_leaves, []);
}

/** Statements that record leaves whose events this database has lost. */
export function insertLostLeaves(firstIndex: number, leaves: number): PreparedStatements {
  return [prepare(sql.insert_lost_leaves, [firstIndex, leaves])];
}
