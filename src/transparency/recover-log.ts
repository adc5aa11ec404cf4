import { isEqual } from "#tlog/bytes.ts";
import { type CheckpointNote, parseCheckpoint } from "#tlog/checkpoint.ts";
import { type LogSource, readBundle } from "#tlog/log-source.ts";
import { HASH_BYTES, TILE_WIDTH } from "#tlog/merkle.ts";
import { isSignedBy } from "#tlog/note.ts";
import { edgeTiles, TreeAppender } from "#tlog/tree.ts";
import { type AuditContext, withAuditEntry } from "../acts/with-audit-entry.ts";
import { selectOverdueSeals } from "../core/chain/db/events.ts";
import { readChainsToSeal, sealChains } from "../core/chain/seal-events.ts";
import { lockVoucher } from "../core/voucher/db/vouchers.ts";
import { acceptLoss } from "../platform/db/marks.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { write } from "../platform/db/transaction.ts";
import { readAnchor } from "./anchors.ts";
import { addUnlogged } from "./backfill-log.ts";
import {
  growTree,
  insertLostLeaves,
  lockTlogTree,
  placeLeaves,
  selectTlogTiles,
  selectWaitingBatches,
} from "./db/log-tree.ts";
import type { TlogSettings } from "./log-settings.ts";
import { followTree, TlogRefused } from "./tree-proofs.ts";

/** Maximum number of overdue events that one transaction reads in order to seal their chains. */
const OVERDUE_MAX = 500;

/** Consecutive leaves. */
interface LeafRun {
  firstIndex: number;
  leaves: number;
}

interface Recovered {
  /** The index of the first leaf that this database lacked. */
  firstIndex: number;
  /** The number of leaves that were appended from the copy. */
  leaves: number;
  /** The appended leaves of events that this database has lost. */
  lost: LeafRun[];
  /** The number of leaves that only this database had. They now follow at new positions. */
  added: number;
  /** The number of leaves of the largest known checkpoint that are missing in the copy. */
  missing: number;
}

/**
 * Appends the leaves that this database lacks from a copy of the log. Ends at the copy's checkpoint, or at the largest
 * checkpoint of an anchor if the copy has none. If an anchor has a larger checkpoint, another copy may have more
 * leaves, so only the copy's leaves are appended. Otherwise, sealed events that are only in this database follow as new
 * leaves.
 *
 * A leaf whose event is not in this database is recorded as lost. The log states the number of lost leaves, and
 * receipts prove their content. Processes refuse a server that has lost data. Once no leaf is missing, they accept this
 * server again.
 * @throws AppError `invalid_request` when there is nothing to recover, or when the copy does not lead to the
 * checkpoints' roots.
 */
export async function recoverTlog(ctx: AuditContext, settings: TlogSettings, source: LogSource): Promise<Recovered> {
  await sealPendingEvents(ctx, settings.origin);
  return withAuditEntry(ctx, { type: "Log", id: settings.origin }, async (tx) => {
    const { known, copied: inCopy } = await readCheckpoints(settings, source);
    const largest = known[0];
    const goal = inCopy ?? largest;
    if (goal === undefined || largest === undefined)
      throw new TlogRefused("Neither an anchor nor the copy has a checkpoint of this log.");
    const tree = await lockTlogTree(tx);
    if (tree === null) throw new TlogRefused("This database has no log, or the log is in use. Stop the workers first.");
    if (goal.size <= tree.size)
      throw new TlogRefused(`The database has ${tree.size} leaves, the copy's checkpoint ${goal.size}.`);
    const appender = new TreeAppender(tree.size, await selectTlogTiles(tx, edgeTiles(tree.size)));
    const copied = await readLeaves(source, tree.size, goal.size);
    appender.append(copied);
    if (!isEqual(appender.root(), goal.root)) {
      throw new TlogRefused(
        `The copy at ${source.from} does not continue this database's log to the checkpoint's root.`,
      );
    }
    // For each appended leaf that is not yet matched to an event of this database: its index, by the leaf's data.
    const unclaimed = new Map<string, number>();
    for (let at = 0; at < copied.length; at += HASH_BYTES) {
      unclaimed.set(keyOf(copied, at), tree.size + at / HASH_BYTES);
    }
    const isCopied = (recordHash: string) => unclaimed.has(keyOf(Buffer.from(recordHash, "hex"), 0));
    await addUnlogged(tx, { voucherId: "", sequence: 0 }, Number.POSITIVE_INFINITY, isCopied);
    const missing = largest.size - goal.size;
    const added = await placeWaiting(tx, unclaimed, appender, missing > 0);
    const lost = runsOf(unclaimed.values());
    await write(tx, [
      ...growTree(tree, appender.grown(), { size: appender.size, root: appender.root() }),
      ...lost.flatMap(({ firstIndex, leaves }) => insertLostLeaves({ firstIndex, leaves })),
    ]);
    const covered = known.filter(({ size }) => size <= appender.size);
    await followTree(tx, { size: appender.size, root: appender.root() }, covered);
    if (missing === 0) await acceptLoss(tx);
    return { firstIndex: tree.size, leaves: goal.size - tree.size, lost, added, missing };
  });
}

/**
 * Seals every event that is Pending when the call begins, because the copy of the log may contain its leaf: the hash
 * does not depend on when an event is sealed. The copy cannot contain the leaf of an event that is inserted later.
 */
async function sealPendingEvents(ctx: AuditContext, origin: string): Promise<void> {
  const startedAt = performance.now();
  for (let overdue: string[] | null = null; overdue === null || overdue.length > 0; ) {
    overdue = await withAuditEntry(
      ctx,
      { type: "Log", id: origin },
      async (tx) => {
        const voucherIds = await selectOverdueSeals(tx, Math.ceil(performance.now() - startedAt), OVERDUE_MAX);
        for (const voucherId of voucherIds.sort()) await lockVoucher(tx, voucherId);
        await write(tx, sealChains(voucherIds, await readChainsToSeal(tx, voucherIds)).writes);
        return voucherIds;
      },
      { before: { chainsSealed: 0 }, after: ({ length }) => ({ chainsSealed: length }) },
    );
  }
}

/**
 * Reads the copy's checkpoint (null without the log's signature), and all known checkpoints, including those of the
 * anchors, largest first.
 */
async function readCheckpoints(
  { anchors, keys, origin }: TlogSettings,
  source: LogSource,
): Promise<{ copied: CheckpointNote | null; known: CheckpointNote[] }> {
  const served = parseCheckpoint(String(await source.read("checkpoint")));
  const copied = served?.origin === origin && (await isSignedBy(served.note, keys)) ? served : null;
  const known = [copied, ...(await Promise.all(anchors.map((file) => readAnchor(file, keys))))];
  return {
    copied,
    known: known.filter((checkpoint) => checkpoint !== null).sort((one, other) => other.size - one.size),
  };
}

/** The data of the copy's leaves in a range. */
async function readLeaves(source: LogSource, start: number, end: number): Promise<Buffer> {
  const bundles: Uint8Array[] = [];
  const first = Math.floor(start / TILE_WIDTH);
  for (let index = first; index * TILE_WIDTH < end; index++) {
    bundles.push(await readBundle(source, index, end));
  }
  return Buffer.concat(bundles).subarray((start - first * TILE_WIDTH) * HASH_BYTES);
}

/**
 * Gives each leaf of the waiting batches its position in the copy and removes it from `unclaimed`. A leaf that is
 * missing in the copy gets a new position at the end of the tree. Keeps the order of the batches, and so the order of
 * each chain's leaves.
 * @param onlyCopied whether leaves that are missing in the copy keep waiting.
 * @returns the number of leaves that got new positions.
 */
async function placeWaiting(
  tx: Transaction,
  unclaimed: Map<string, number>,
  appender: TreeAppender,
  onlyCopied: boolean,
): Promise<number> {
  const before = appender.size;
  for (let after = 0; ; ) {
    const batches = await selectWaitingBatches(tx, after);
    const last = batches.at(-1);
    if (last === undefined) return appender.size - before;
    after = last.id;
    const added: Buffer[] = [];
    const placed = batches.flatMap(({ id, leaves, hashes }) => {
      const data = Array.from({ length: leaves }, (_, leaf) =>
        hashes.subarray(leaf * HASH_BYTES, (leaf + 1) * HASH_BYTES),
      );
      const inCopy = data.filter((leaf) => unclaimed.has(keyOf(leaf, 0))).length;
      if (onlyCopied && inCopy < leaves) {
        if (inCopy === 0) return [];
        throw new TlogRefused(
          "A batch has leaves of the copy and others. Use a copy that has the whole log, or see log retire.",
        );
      }
      const places = data.map((leaf) => {
        const key = keyOf(leaf, 0);
        const copied = unclaimed.get(key);
        unclaimed.delete(key);
        return copied ?? appender.size + added.push(leaf) - 1;
      });
      return [{ id, places }];
    });
    if (placed.length > 0) await write(tx, placeLeaves(placed));
    if (added.length > 0) appender.append(Buffer.concat(added));
  }
}

function keyOf(hashes: Buffer, at: number): string {
  return hashes.toString("latin1", at, at + HASH_BYTES);
}

function runsOf(indexes: Iterable<number>): LeafRun[] {
  const runs: LeafRun[] = [];
  for (const index of indexes) {
    const last = runs.at(-1);
    if (last !== undefined && last.firstIndex + last.leaves === index) last.leaves += 1;
    else runs.push({ firstIndex: index, leaves: 1 });
  }
  return runs;
}
