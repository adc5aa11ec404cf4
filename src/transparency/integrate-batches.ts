import type pg from "pg";
import { parseCheckpoint, type TreeHead } from "#tlog/checkpoint.ts";
import { isSignedBy } from "#tlog/note.ts";
import { inTransaction, write } from "../platform/db/transaction.ts";
import { findPublished, type Published } from "./db/log-checkpoints.ts";
import { growTree, lockTlogTree, placeBatches, selectWaitingBatches } from "./db/log-tree.ts";
import type { TlogSettings } from "./log-settings.ts";
import { appendInTurns, followTree, TlogRefused } from "./tree-proofs.ts";

interface Integrated {
  /** The tree's size and root, verified by this process from a signed head on. It may sign them after the commit. */
  head: TreeHead;
  /** The start time of the database server, which identifies this run of the server. */
  server: string;
  /** The served checkpoint and its age. The log's signature of the checkpoint was checked. */
  published: (Published & { ageMs: number }) | null;
  /** The number of leaves that got a position. */
  placed: number;
}

/**
 * In one transaction, verifies the stored tree, starting from the signed heads and the served checkpoint, and adds the
 * leaves of the next waiting batches at the tree's end. So nothing needs repair after a crash.
 * @param heads the tree heads that the log is known to have signed.
 * @param server the database server that was compared with the witnesses. On any other server, no leaf is added.
 * @returns null while another transaction has locked the tree, and when there is no log.
 * @throws TlogRefused when the database contradicts what the log has signed.
 */
export function integrateBatches(
  pool: pg.Pool,
  { origin, keys }: Pick<TlogSettings, "origin" | "keys">,
  heads: readonly TreeHead[],
  server: string | null,
): Promise<Integrated | null> {
  return inTransaction(pool, async (tx) => {
    const [tree, batches] = await Promise.all([
      lockTlogTree(tx),
      // Sends this read together with the lock, to save a round trip. Its result is unused if another transaction has
      // locked the tree.
      selectWaitingBatches(tx),
    ]);
    if (tree === null) return null;
    if (tree.origin !== origin) throw new TlogRefused(`The database has the log ${tree.origin}, not ${origin}.`);
    const published = await findPublished(tx);
    const served = published && parseCheckpoint(published.note);
    if (published !== null && (served?.size !== published.size || !(await isSignedBy(served.note, keys)))) {
      throw new TlogRefused("The served checkpoint is not one that this log has signed for its tree.");
    }
    const followed = await followTree(tx, tree, served === null ? heads : [...heads, served]);
    if (batches.length > 0 && tree.server === server) {
      await appendInTurns(followed, Buffer.concat(batches.map(({ hashes }) => hashes)));
      const after = { size: followed.size, root: followed.root() };
      await write(tx, [...placeBatches(batches, tree.size), ...growTree(tree, followed.grown(), after)]);
    }
    const head = { size: followed.size, root: followed.root() };
    return { head, server: tree.server, published, placed: head.size - tree.size };
  });
}
