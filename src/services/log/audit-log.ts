import { type LoggedHash, selectLoggedOfRange } from "../../db/events.ts";
import { findPublished } from "../../db/log-checkpoints.ts";
import { countWaitingLeaves, findLogTree, selectLogTiles, selectLostLeaves } from "../../db/log-tree.ts";
import type { Queryable } from "../../db/pool.ts";
import { findLastOfNext } from "../../db/vouchers.ts";
import { HASH_BYTES, TILE_WIDTH, type TileId } from "../../domain/log/merkle.ts";
import { edgeTiles, type StoredTile, TreeAppender } from "../../domain/log/tiles.ts";

/** Bundles read at once: two megabytes. */
const BUNDLES = 256;
/** Vouchers read at once. */
const VOUCHERS = 2_000;
/** Problems that are described; more are counted only. */
const DESCRIBED_MAX = 100;

export interface LogAudit {
  leaves: number;
  /** Sealed events with a leaf. */
  events: number;
  /** Sealed events that wait for their place. */
  waiting: number;
  /** Leaves that were recovered after their events had been lost. */
  lost: number;
  problemCount: number;
  problems: string[];
}

/**
 * Recomputes the tree from its bundles, and compares it with the stored tiles, the served checkpoint and every sealed event: each is in
 * exactly one leaf with its hash, and each leaf is an event or noted as lost. Holds the data of all leaves in memory, 32 bytes each.
 * @param db a read-only transaction on one snapshot.
 */
export async function auditLog(db: Queryable, onEvents: (events: number) => void = () => undefined): Promise<LogAudit> {
  const audit: LogAudit = { leaves: 0, events: 0, waiting: 0, lost: 0, problemCount: 0, problems: [] };
  const report = (problem: string) => {
    audit.problemCount += 1;
    if (audit.problems.length < DESCRIBED_MAX) audit.problems.push(problem);
  };
  const tree = await findLogTree(db);
  const entries = await recomputeTree(db, tree?.size ?? 0, report);
  audit.leaves = entries.leaves.length / HASH_BYTES;
  if (tree !== null && !entries.root.equals(tree.root)) report("the tree's stored root is not that of its leaves");
  const published = await findPublished(db);
  if (published !== null) {
    if (published.size > audit.leaves)
      report(`the served checkpoint has ${published.size} leaves, the tree ${audit.leaves}`);
    else if (!published.root.equals(rootOf(entries.leaves, published.size))) {
      report("the served checkpoint has another root");
    }
  }
  const seen = new Uint8Array(audit.leaves);
  for (let afterId = ""; ; ) {
    const lastId = await findLastOfNext(db, afterId, VOUCHERS);
    if (lastId === null) break;
    for (const event of await selectLoggedOfRange(db, afterId, lastId)) {
      const problem = findProblem(event, entries.leaves, seen);
      if (problem !== null) report(`event ${event.sequence} of ${event.voucherId} ${problem}`);
      if (event.logIndex === null) audit.waiting += event.hasSlot ? 1 : 0;
      else audit.events += 1;
    }
    onEvents(audit.events);
    afterId = lastId;
  }
  for (const { firstIndex, leaves } of await selectLostLeaves(db)) {
    audit.lost += leaves;
    if (firstIndex + leaves > audit.leaves)
      report(`leaf ${firstIndex + leaves - 1} is noted as lost, but not in the tree`);
    for (let index = firstIndex; index < Math.min(firstIndex + leaves, audit.leaves); index++) {
      if (seen[index] === 1) report(`leaf ${index} is noted as lost, but belongs to an event`);
      seen[index] = 1;
    }
  }
  const waiting = await countWaitingLeaves(db);
  if (waiting !== audit.waiting) report(`${waiting} leaves wait for their place, and ${audit.waiting} events`);
  for (const [index, isSeen] of seen.entries()) if (isSeen === 0) report(`leaf ${index} belongs to no event`);
  return audit;
}

function findProblem(event: LoggedHash, leaves: Buffer, seen: Uint8Array): string | null {
  const { logIndex, hasSlot, recordHash, waitingHash } = event;
  if (!hasSlot) return "is not in the log; see voucherctl log backfill";
  if (logIndex === null) {
    return waitingHash?.equals(recordHash) ? null : "waits for its place in the log with another hash";
  }
  const at = logIndex * HASH_BYTES;
  if (at >= leaves.length) return `has leaf ${logIndex}, which the tree has not`;
  if (seen[logIndex] === 1) return `shares leaf ${logIndex} with another event`;
  seen[logIndex] = 1;
  return recordHash.equals(leaves.subarray(at, at + HASH_BYTES)) ? null : `has another hash than leaf ${logIndex}`;
}

/** Reads all bundles, and compares the tiles above them with those that are stored. */
async function recomputeTree(
  db: Queryable,
  size: number,
  report: (problem: string) => void,
): Promise<{ leaves: Buffer; root: Buffer }> {
  const leaves = Buffer.alloc(size * HASH_BYTES);
  let edge: StoredTile[] = [];
  for (let at = 0; at < size; ) {
    const count = Math.min(BUNDLES * TILE_WIDTH, size - at);
    const ids: TileId[] = [];
    for (let index = at / TILE_WIDTH; index * TILE_WIDTH < at + count; index++) ids.push({ level: 0, index });
    const bundles = new Map((await selectLogTiles(db, ids)).map((bundle) => [bundle.index, bundle.hashes]));
    for (const { index } of ids) {
      const wanted = Math.min(TILE_WIDTH, size - index * TILE_WIDTH) * HASH_BYTES;
      const bytes = bundles.get(index)?.subarray(0, wanted);
      if (bytes?.length !== wanted) report(`bundle ${index} is missing or too short`);
      bytes?.copy(leaves, index * TILE_WIDTH * HASH_BYTES);
    }
    const appender = new TreeAppender(at, edge);
    appender.append(leaves.subarray(at * HASH_BYTES, (at + count) * HASH_BYTES));
    const grown = appender.grown();
    const above = grown.filter(({ level }) => level > 0);
    const stored = await selectLogTiles(db, above);
    for (const { level, index, hashes } of above) {
      const found = stored.find((tile) => tile.level === level && tile.index === index)?.hashes;
      if (found === undefined || !found.subarray(0, hashes.length).equals(hashes)) {
        report(`tile ${level}/${index} is not that of the leaves`);
      }
    }
    at += count;
    edge = edgeTiles(at).flatMap(
      (wanted) =>
        [...grown, ...edge].find(({ level, index }) => level === wanted.level && index === wanted.index) ?? [],
    );
  }
  return { leaves, root: new TreeAppender(size, edge).root() };
}

function rootOf(leaves: Buffer, size: number): Buffer {
  const appender = new TreeAppender(0, []);
  appender.append(leaves.subarray(0, size * HASH_BYTES));
  return appender.root();
}
