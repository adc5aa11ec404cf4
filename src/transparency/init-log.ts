import { type CheckpointNote, formatCheckpoint, type TreeHead } from "#tlog/checkpoint.ts";
import { signNote } from "#tlog/note.ts";
import { type AuditContext, withAuditEntry } from "../acts/with-audit-entry.ts";
import type { Queryable } from "../platform/db/pool.ts";
import { readAnchor, writeAnchor } from "./anchors.ts";
import { findTlogTree, insertTlogTree } from "./db/log-tree.ts";
import type { TlogSettings } from "./log-settings.ts";
import { EMPTY_TREE, followTree, TlogRefused } from "./tree-proofs.ts";

interface TlogInit {
  origin: string;
  size: number;
  /** Whether this run began the log. */
  begun: boolean;
  /** Anchors that this run wrote. */
  anchorsWritten: string[];
}

/**
 * Begins the log of a database with an empty tree, and writes the first anchors. If the database already has a log,
 * reads its leaves and writes missing anchors from the stored tree. The missing anchors require `acceptAnchor`, because
 * only a person can confirm that no larger tree was ever signed.
 * @throws AppError `invalid_request` when the database has a log of another name, when an anchor has more leaves than
 * the database, or when an anchor of an existing log is missing and `acceptAnchor` is false.
 */
export async function initTlog(ctx: AuditContext, settings: TlogSettings, acceptAnchor: boolean): Promise<TlogInit> {
  const { origin, anchors } = settings;
  const known = await readAnchors(settings);
  const largest = Math.max(0, ...known.map((anchor) => anchor?.size ?? 0));
  const missing = anchors.find((_, at) => known[at] === null);
  return withAuditEntry(
    ctx,
    { type: "Log", id: origin },
    async (tx): Promise<TlogInit> => {
      const before = await findTlogTree(tx);
      const tree = before ?? EMPTY_TREE;
      if (before !== null && before.origin !== origin) {
        throw new TlogRefused(`This database has the log ${before.origin}. A log keeps its name.`);
      }
      if (largest > tree.size) {
        throw new TlogRefused(
          `An anchor knows ${largest} leaves, the database ${tree.size}. See: voucherctl log recover`,
        );
      }
      if (before !== null && missing !== undefined && !acceptAnchor) {
        throw new TlogRefused(`The anchor ${missing} is missing. --accept-anchor writes it from this database.`);
      }
      if (before === null) await insertTlogTree(tx, { origin, root: EMPTY_TREE.root });
      const anchorsWritten = await writeMissingAnchors(tx, tree, settings);
      return { origin, size: tree.size, begun: before === null, anchorsWritten };
    },
    { before: { anchorsWritten: [] }, after: ({ anchorsWritten }) => ({ anchorsWritten }) },
  );
}

/** Reads the leaves of the stored tree and verifies them, then writes the missing anchors. Returns the new files. */
export async function writeMissingAnchors(db: Queryable, tree: TreeHead, settings: TlogSettings): Promise<string[]> {
  const { origin, keys, anchors } = settings;
  const known = await readAnchors(settings);
  const missing = anchors.filter((_, at) => known[at] === null);
  if (missing.length === 0) return [];
  await followTree(
    db,
    tree,
    known.filter((anchor) => anchor !== null),
  );
  const note = await signNote(keys, formatCheckpoint({ origin, size: tree.size, root: tree.root }));
  for (const file of missing) await writeAnchor(file, note, keys);
  return missing;
}

function readAnchors({ anchors, keys }: TlogSettings): Promise<(CheckpointNote | null)[]> {
  return Promise.all(anchors.map((file) => readAnchor(file, keys)));
}
