import type pg from "pg";
import { parseCheckpoint } from "#tlog/checkpoint.ts";
import { HASH_BYTES, type TileId } from "#tlog/merkle.ts";
import { formatBundle, parseTilePath, tileWidth } from "#tlog/tiles.ts";
import { hashLeaves } from "#tlog/tree.ts";
import type { Bulkhead, Requester } from "../core/callers/bulkhead.ts";
import { AppError } from "../platform/api/errors.ts";
import type { Queryable } from "../platform/db/pool.ts";
import { findPublished, type Published } from "./db/log-checkpoints.ts";
import { selectTlogTiles } from "./db/log-tree.ts";

type Deps = { pool: pg.Pool; publicReads: Bulkhead<"visitor"> };
type Visitor = Requester<"visitor">;

/**
 * Reads the served checkpoint and its policy.
 * @throws AppError `not_found` before the first checkpoint, `overloaded`.
 */
export function readPublished(ctx: Deps, visitor: Visitor): Promise<Published> {
  return ctx.publicReads(visitor, () => selectPublished(ctx.pool));
}

/** The served checkpoint's log, tree size and policy. Null before the first checkpoint. */
export async function findCheckpoint(db: Queryable): Promise<{ origin: string; size: number; policy: string } | null> {
  const published = await findPublished(db);
  const checkpoint = parseCheckpoint(published?.note ?? "");
  return published && checkpoint && { origin: checkpoint.origin, size: checkpoint.size, policy: published.policy };
}

/**
 * Reads the bytes of a tile or bundle by its path under the log's URL. Serves only hashes that the served checkpoint
 * covers: at most as many as the tile has in the checkpoint's tree.
 * @throws AppError `not_found`, `overloaded`.
 */
export function readTile(ctx: Deps, visitor: Visitor, path: string): Promise<Uint8Array> {
  return ctx.publicReads(visitor, async () => {
    const tile = parseTilePath(path);
    if (tile === null) throw new AppError("not_found");
    const { index, width } = tile;
    const tileId = { level: tile.level ?? 0, index };
    if (width > tileWidth(tileId, (await selectPublished(ctx.pool)).size)) throw new AppError("not_found");
    const hashes = await selectHashes(ctx.pool, tileId, width);
    if (tile.level === null) return formatBundle(hashes);
    return tile.level === 0 ? hashLeaves(hashes) : hashes;
  });
}

/** Reads the first `width` hashes of a tile or, at level 0, the data of leaves. @throws Error when they are missing. */
export async function selectHashes(db: Queryable, { level, index }: TileId, width: number): Promise<Buffer> {
  const [stored] = await selectTlogTiles(db, [{ level, index }]);
  const hashes = stored?.hashes.subarray(0, width * HASH_BYTES);
  if (hashes?.length !== width * HASH_BYTES)
    throw new Error(`the log's tile ${level}/${index} is missing or too short`);
  return hashes;
}

async function selectPublished(pool: pg.Pool): Promise<Published> {
  const published = await findPublished(pool);
  if (published === null) throw new AppError("not_found");
  return published;
}
