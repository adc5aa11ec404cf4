import { setImmediate as nextTurn } from "node:timers/promises";
import type pg from "pg";
import {
  growTree,
  type LogTree,
  lockLogTree,
  placeBatches,
  selectLogTiles,
  selectWaitingBatches,
} from "../../db/log-tree.ts";
import { inTransaction, write } from "../../db/transaction.ts";
import { HASH_BYTES } from "../../domain/log/merkle.ts";
import { edgeTiles, TreeAppender } from "../../domain/log/tiles.ts";

/** Leaves hashed in one turn of the event loop: three milliseconds. */
const TURN_LEAVES = 2_048;

/**
 * Gives the next waiting batches their places at the end of the tree, and writes the bundles and tiles that grow, in one transaction. So
 * there is nothing to repair after a crash. Does nothing while another transaction has the tree locked.
 * @param compared the tree that was compared with the anchors and witnesses.
 * @returns the number of leaves that got a place.
 */
export function integrateBatches(
  ctx: { pool: pg.Pool },
  compared: Pick<LogTree, "origin" | "server">,
): Promise<number> {
  return inTransaction(ctx.pool, async (tx) => {
    const [tree, batches] = await Promise.all([
      lockLogTree(tx),
      // Sent together with the lock, which saves a round trip. If the tree is locked by another transaction, the read is not used.
      selectWaitingBatches(tx),
    ]);
    if (tree === null || batches.length === 0) return 0;
    assertCompared(tree, compared);
    const appender = new TreeAppender(tree.size, await selectLogTiles(tx, edgeTiles(tree.size)));
    if (!appender.root().equals(tree.root)) throw new Error("the stored tiles of the log do not have the stored root");
    const leaves = Buffer.concat(batches.map(({ hashes }) => hashes));
    for (let at = 0; at < leaves.length; at += TURN_LEAVES * HASH_BYTES) {
      appender.append(leaves.subarray(at, at + TURN_LEAVES * HASH_BYTES));
      await nextTurn();
    }
    const after = { size: appender.size, root: appender.root() };
    await write(tx, [...placeBatches(batches, tree.size), ...growTree(tree, appender.grown(), after)]);
    return after.size - tree.size;
  });
}

/**
 * Asserts that the tree has the log and the database server that were compared with the anchors and witnesses.
 * @throws Error when it does not; the next pass compares again.
 */
export function assertCompared(tree: LogTree, { origin, server }: Pick<LogTree, "origin" | "server">): void {
  if (tree.server !== server) throw new Error("the database server has changed during a pass of the log");
  if (tree.origin !== origin) throw new Error("the log was retired during a pass");
}
