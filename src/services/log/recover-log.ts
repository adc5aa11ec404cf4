import { AppError } from "../../contract/errors.ts";
import { growTree, insertLostLeaves, lockLogTree, selectLogTiles } from "../../db/log-tree.ts";
import { write } from "../../db/transaction.ts";
import { HASH_BYTES, TILE_WIDTH } from "../../domain/log/merkle.ts";
import { edgeTiles, TreeAppender } from "../../domain/log/tiles.ts";
import { type AuditContext, withAuditEntry } from "../admin/with-audit-entry.ts";
import { readAnchor } from "./anchors.ts";
import type { LogSettings } from "./log-settings.ts";
import { type LogSource, readBundle } from "./log-source.ts";

export interface Recovered {
  /** The first leaf that this database had lost. */
  firstIndex: number;
  leaves: number;
}

/**
 * Appends the leaves that this database has lost, from a copy of the log, up to the anchor's checkpoint, whose root they must have. Notes
 * them as lost: their events are gone, but the log says how many there were, and receipts prove what they were.
 * @throws AppError `invalid_request` when there is nothing to recover, or the copy does not lead to the anchor's root.
 */
export function recoverLog(ctx: AuditContext, settings: LogSettings, source: LogSource): Promise<Recovered> {
  return withAuditEntry(ctx, { type: "Log", id: settings.origin }, async (tx) => {
    const anchors = await Promise.all(settings.anchors.map((file) => readAnchor(file, settings.keys)));
    const anchor = anchors.filter((known) => known !== null).sort((a, b) => b.size - a.size)[0];
    if (anchor === undefined) throw refuse("No anchor remembers the log.");
    const tree = await lockLogTree(tx);
    if (tree === null) throw refuse("This database has no log, or the log is in use. Stop the workers first.");
    if (anchor.size <= tree.size) throw refuse(`The database has ${tree.size} leaves, the anchor ${anchor.size}.`);
    const appender = new TreeAppender(tree.size, await selectLogTiles(tx, edgeTiles(tree.size)));
    for (let index = Math.floor(tree.size / TILE_WIDTH); index * TILE_WIDTH < anchor.size; index++) {
      const width = Math.min(TILE_WIDTH, anchor.size - index * TILE_WIDTH);
      const leaves = await readBundle(source, index, width);
      appender.append(leaves.subarray(Math.max(0, tree.size - index * TILE_WIDTH) * HASH_BYTES));
    }
    const after = { size: appender.size, root: appender.root() };
    if (!after.root.equals(anchor.root)) {
      throw refuse(`The copy at ${source.from} does not continue this database's log to the anchor's root.`);
    }
    const lost = { firstIndex: tree.size, leaves: after.size - tree.size };
    await write(tx, [...growTree(tree, appender.grown(), after), ...insertLostLeaves(lost.firstIndex, lost.leaves)]);
    return lost;
  });
}

function refuse(reason: string): AppError {
  return new AppError("invalid_request", reason);
}
