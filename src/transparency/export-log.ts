import { TILE_WIDTH } from "#tlog/merkle.ts";
import { writeInto } from "#tlog/monitor.ts";
import { formatBundle, formatTilePath, tileWidth } from "#tlog/tiles.ts";
import { hashLeaves } from "#tlog/tree.ts";
import { AppError } from "../platform/api/errors.ts";
import type { Queryable } from "../platform/db/pool.ts";
import { findPublished, type Published } from "./db/log-checkpoints.ts";
import { selectHashes } from "./read-log.ts";

/** A checkpoint that is or was served, with the witness policy of its log. */
type Served = Pick<Published, "size" | "note" | "policy">;

/**
 * Writes the served log as files under the paths of its URLs, so that any web server can serve them.
 * @param served the checkpoint to export, for a log that is being retired or was retired. By default, the served
 * checkpoint.
 * @returns the number of leaves.
 * @throws AppError `not_found` before the first checkpoint.
 */
export async function exportTlog(db: Queryable, directory: string, served?: Served): Promise<number> {
  const published = served ?? (await findPublished(db));
  if (published === null) throw new AppError("not_found", "No checkpoint is served yet.");
  const { size, note, policy } = published;
  await writeInto(directory, "policy", policy);
  for (let level = 0; Math.floor(size / TILE_WIDTH ** level) > 0; level++) {
    for (let index = 0; ; index++) {
      const width = tileWidth({ level, index }, size);
      if (width === 0) break;
      const hashes = await selectHashes(db, { level, index }, width);
      await writeInto(directory, formatTilePath({ level, index, width }), level === 0 ? hashLeaves(hashes) : hashes);
      if (level === 0) await writeInto(directory, formatTilePath({ level: null, index, width }), formatBundle(hashes));
    }
  }
  // The checkpoint is written last, so that a directory with a checkpoint contains all files.
  await writeInto(directory, "checkpoint", note);
  return size;
}
