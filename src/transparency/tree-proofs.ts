import { setImmediate as nextTurn } from "node:timers/promises";
import { isEqual } from "#tlog/bytes.ts";
import type { TreeHead } from "#tlog/checkpoint.ts";
import {
  consistencyRanges,
  HASH_BYTES,
  inclusionRanges,
  type LeafRange,
  TILE_WIDTH,
  tilesOf,
  verifyConsistency,
} from "#tlog/merkle.ts";
import { tileWidth } from "#tlog/tiles.ts";
import { edgeTiles, hashLeaves, type ReadTile, rootOfRange, TreeAppender } from "#tlog/tree.ts";
import { AppError } from "../platform/api/errors.ts";
import type { Queryable } from "../platform/db/pool.ts";
import { selectTlogTiles } from "./db/log-tree.ts";
import type { TlogReport } from "./job.ts";

/** Maximum number of leaves that are read at once: two megabytes. */
const READ_LEAVES = 65_536;
/** Number of leaves hashed in one turn of the event loop. A turn takes three milliseconds. */
const TURN_LEAVES = 2_048;

/** A tree without leaves. */
export const EMPTY_TREE: TreeHead = { size: 0, root: rootOfRange({ start: 0, end: 0 }, () => Buffer.alloc(0)) };

type Obstacle = NonNullable<TlogReport["obstacle"]>;

/** The error with which the log stops. The message tells an operator why. */
export class TlogRefused extends AppError {
  readonly obstacle: Obstacle;

  constructor(message: string, obstacle: Obstacle = "contradiction") {
    super("invalid_request", message);
    this.obstacle = obstacle;
  }
}

/**
 * Verifies the stored tree. Begins at the largest head that the log has signed, and adds every later leaf. Returns the
 * tree, ready for further leaves. Trusts no stored root: a process signs only a root that it has computed itself.
 * @param tree the tree's head in the database, locked or on one snapshot.
 * @param heads signed heads, which the tree must continue. If there are none, begins at the empty tree.
 * @throws TlogRefused when the tree does not continue a head, or when its root is not that of its leaves.
 */
export async function followTree(db: Queryable, tree: TreeHead, heads: readonly TreeHead[]): Promise<TreeAppender> {
  const last = heads.reduce((largest, head) => (head.size > largest.size ? head : largest), EMPTY_TREE);
  if (last.size > tree.size) {
    throw new TlogRefused(
      `A signed checkpoint has ${last.size} leaves, the database ${tree.size}: it has lost a part of the log.`,
    );
  }
  for (const { size, root } of heads) {
    const isKept =
      size === last.size
        ? isEqual(root, last.root)
        : await verifyConsistency(size, root, last.size, last.root, await proveConsistency(db, size, last.size));
    if (!isKept) throw otherRoot(size);
  }
  const followed = new TreeAppender(last.size, await selectTlogTiles(db, edgeTiles(last.size)));
  if (!isEqual(followed.root(), last.root)) throw otherRoot(last.size);
  while (followed.size < tree.size) {
    const end = Math.min(followed.size - (followed.size % READ_LEAVES) + READ_LEAVES, tree.size);
    await appendInTurns(followed, await readLeaves(db, { start: followed.size, end }));
    // The tiles of the followed leaves are already stored, so they are not returned as new.
    followed.takeGrown();
  }
  if (!isEqual(followed.root(), tree.root)) {
    throw new TlogRefused(`The database has another root for its ${tree.size} leaves than these leaves have.`);
  }
  return followed;
}

function otherRoot(size: number): TlogRefused {
  return new TlogRefused(`A signed checkpoint has another root for ${size} leaves than the database.`);
}

/** Appends leaves, given by their data, in several turns of the event loop. */
export async function appendInTurns(appender: TreeAppender, leaves: Uint8Array): Promise<void> {
  for (let at = 0; at < leaves.length; at += TURN_LEAVES * HASH_BYTES) {
    appender.append(leaves.subarray(at, at + TURN_LEAVES * HASH_BYTES));
    await nextTurn();
  }
}

/** The data of stored leaves. @throws TlogRefused when a leaf is missing. */
async function readLeaves(db: Queryable, { start, end }: LeafRange): Promise<Buffer> {
  const first = Math.floor(start / TILE_WIDTH);
  const ids = Array.from({ length: Math.ceil(end / TILE_WIDTH) - first }, (_, at) => ({ level: 0, index: first + at }));
  const bundles = (await selectTlogTiles(db, ids)).sort((one, other) => one.index - other.index);
  const data = Buffer.concat(bundles.map((each) => each.hashes.subarray(0, tileWidth(each, end) * HASH_BYTES)));
  if (data.length !== (end - first * TILE_WIDTH) * HASH_BYTES) {
    throw new TlogRefused(`The database states ${end} leaves or more, but lacks one from ${start} on.`);
  }
  return data.subarray((start - first * TILE_WIDTH) * HASH_BYTES);
}

/** The proof that the leaf at `index` is in the tree with `size` leaves. */
export function proveInclusion(db: Queryable, index: number, size: number): Promise<Buffer[]> {
  return rootsOf(db, inclusionRanges(index, size));
}

/** The proof that the tree with `size` leaves continues the tree with `oldSize` leaves. */
export function proveConsistency(db: Queryable, oldSize: number, size: number): Promise<Buffer[]> {
  return rootsOf(db, consistencyRanges(oldSize, size));
}

async function rootsOf(db: Queryable, ranges: readonly LeafRange[]): Promise<Buffer[]> {
  const read = await readTiles(db, ranges);
  return ranges.map((range) => rootOfRange(range, read));
}

/** In one statement, reads the few tiles from which the roots of these ranges are computed. */
async function readTiles(db: Queryable, ranges: readonly LeafRange[]): Promise<ReadTile> {
  const stored = await selectTlogTiles(db, tilesOf(ranges));
  const tiles = new Map(
    stored.map(({ level, index, hashes }) => [`${level}/${index}`, level === 0 ? hashLeaves(hashes) : hashes]),
  );
  return ({ level, index }) => {
    const tile = tiles.get(`${level}/${index}`);
    if (tile === undefined) throw new Error(`the log has no tile ${level}/${index}`);
    return tile;
  };
}
