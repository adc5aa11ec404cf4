import { formatCheckpoint } from "../../../packages/tlog/src/checkpoint.ts";
import { signNote } from "../../../packages/tlog/src/note.ts";
import { AppError } from "../../contract/errors.ts";
import { findLogTree, insertLogTree } from "../../db/log-tree.ts";
import { type AuditContext, withAuditEntry } from "../audit/with-audit-entry.ts";
import { readAnchor, writeAnchor } from "./anchors.ts";
import type { LogSettings } from "./log-settings.ts";
import { EMPTY_TREE, followTree } from "./tree-proofs.ts";

export interface LogInit {
  origin: string;
  size: number;
  /** Whether this run began the log. */
  begun: boolean;
  /** Anchors that this run wrote. */
  anchorsWritten: string[];
}

/**
 * Begins the log of a database with an empty tree, and writes the first anchors. If the database already has a log, writes missing anchors
 * from the stored tree, whose leaves it reads, but only with `acceptAnchor`: only a person can confirm that no larger tree was ever signed.
 * @throws AppError `invalid_request` when the database has a log of another name, when an anchor has more leaves than the database, or when
 * an anchor of an existing log is missing and `acceptAnchor` is false.
 */
export async function initLog(ctx: AuditContext, settings: LogSettings, acceptAnchor: boolean): Promise<LogInit> {
  const { origin, keys, anchors } = settings;
  const found = await Promise.all(anchors.map(async (file) => ({ file, known: await readAnchor(file, keys) })));
  const missing = found.filter(({ known }) => known === null).map(({ file }) => file);
  const largest = Math.max(0, ...found.map(({ known }) => known?.size ?? 0));
  return withAuditEntry(
    ctx,
    { type: "Log", id: origin },
    async (tx): Promise<LogInit> => {
      const before = await findLogTree(tx);
      if (before !== null && before.origin !== origin) {
        throw refuse(`This database has the log ${before.origin}. A log keeps its name.`);
      }
      if (largest > (before?.size ?? 0)) {
        throw refuse(
          `An anchor knows ${largest} leaves, the database ${before?.size ?? 0}. See: voucherctl log recover`,
        );
      }
      if (before !== null && missing.length > 0 && !acceptAnchor) {
        throw refuse(`The anchor ${missing[0]} is missing. --accept-anchor writes it from this database.`);
      }
      if (before === null) await insertLogTree(tx, origin, EMPTY_TREE.root);
      const tree = before ?? EMPTY_TREE;
      const heads = found.flatMap(({ known }) => known ?? []);
      if (missing.length > 0) await followTree(tx, tree, heads);
      const note = await signNote(keys, formatCheckpoint({ origin, ...tree }));
      for (const file of missing) await writeAnchor(file, note, keys);
      return { origin, size: tree.size, begun: before === null, anchorsWritten: missing };
    },
    { before: { anchorsWritten: [] }, after: ({ anchorsWritten }) => ({ anchorsWritten }) },
  );
}

function refuse(reason: string): AppError {
  return new AppError("invalid_request", reason);
}
