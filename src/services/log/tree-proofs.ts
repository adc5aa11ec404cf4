import { selectLogTiles } from "../../db/log-tree.ts";
import type { Queryable } from "../../db/pool.ts";
import {
  consistencyRanges,
  hashLeaves,
  inclusionRanges,
  type LeafRange,
  type ReadTile,
  rootOfRange,
  tilesOf,
} from "../../domain/log/merkle.ts";

/** The root of the first `size` leaves, computed from the stored tiles of a tree that is at least as large. */
export async function computeRoot(db: Queryable, size: number): Promise<Buffer> {
  const whole = { start: 0, end: size };
  return rootOfRange(whole, await readTiles(db, [whole]));
}

/** The proof that the leaf at `index` is in the tree of `size`. */
export function proveInclusion(db: Queryable, index: number, size: number): Promise<Buffer[]> {
  return rootsOf(db, inclusionRanges(index, size));
}

/** The proof that the tree of `size` continues the one of `oldSize`. */
export function proveConsistency(db: Queryable, oldSize: number, size: number): Promise<Buffer[]> {
  return rootsOf(db, consistencyRanges(oldSize, size));
}

async function rootsOf(db: Queryable, ranges: readonly LeafRange[]): Promise<Buffer[]> {
  const read = await readTiles(db, ranges);
  return ranges.map((range) => rootOfRange(range, read));
}

/** Reads, in one statement, the few tiles from which the roots of these ranges are computed. */
async function readTiles(db: Queryable, ranges: readonly LeafRange[]): Promise<ReadTile> {
  const stored = await selectLogTiles(db, tilesOf(ranges));
  const tiles = new Map(
    stored.map(({ level, index, hashes }) => [`${level}/${index}`, level === 0 ? hashLeaves(hashes) : hashes]),
  );
  return ({ level, index }) => {
    const tile = tiles.get(`${level}/${index}`);
    if (tile === undefined) throw new Error(`the log has no tile ${level}/${index}`);
    return tile;
  };
}
