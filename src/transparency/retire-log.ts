import { hash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isEqual } from "#tlog/bytes.ts";
import { type CheckpointNote, parseCheckpoint } from "#tlog/checkpoint.ts";
import { isUnfinished, readIfThere } from "#tlog/durable-file.ts";
import { writeInto } from "#tlog/monitor.ts";
import { isSignedBy, parseNote, signNote } from "#tlog/note.ts";
import { parsePolicy } from "#tlog/policy.ts";
import type { TreeAppender } from "#tlog/tree.ts";
import { type AuditContext, withAuditEntry } from "../acts/with-audit-entry.ts";
import { acceptLoss } from "../platform/db/marks.ts";
import type { Queryable } from "../platform/db/pool.ts";
import { write } from "../platform/db/transaction.ts";
import { readAnchor } from "./anchors.ts";
import { findPublished } from "./db/log-checkpoints.ts";
import { lockTlogToRetire, selectTlogRetirements, type TlogRetirement, writeRetirement } from "./db/log-retirements.ts";
import { findTlogTree, growTree, type TlogTree } from "./db/log-tree.ts";
import { exportTlog } from "./export-log.ts";
import { writeMissingAnchors } from "./init-log.ts";
import type { TlogSettings } from "./log-settings.ts";
import { followTree, TlogRefused } from "./tree-proofs.ts";

export interface RetireOptions {
  /** The name of the log to retire. */
  origin: string;
  reason: string;
  /** The directory for its export. */
  directory: string;
  /** Files with checkpoints of this log, for example its anchors. */
  checkpoints: readonly { file: string; text: string }[];
  /** Whether to retire the log even if the database lacks leaves that the log has signed. */
  acceptLoss: boolean;
}

interface RetiredLog {
  origin: string;
  nextOrigin: string;
  /**
   * The number of leaves that the next log takes over. The leaf after them is the SHA-256 of the retired log's last
   * checkpoint.
   */
  size: number;
  /** The number of leaves in the last checkpoint that the retired log signed. */
  lastSize: number;
  /** The number of exported leaves. */
  exported: number;
  anchorsWritten: string[];
}

/** The row for the retirement, not yet inserted, and the tree of the retired log. */
interface RetirementPlan extends Omit<TlogRetirement, "retiredAt"> {
  tree: TlogTree;
  /** The log's tree, computed from its leaves. */
  followed: TreeAppender;
}

/**
 * Ends a log, and begins the next one with the same tree, under the name and key of `settings`. Every event keeps its
 * leaf. Receipts of the retired log stay valid under its policy, cached tiles stay valid, and a monitor of the retired
 * log can verify that the next log continues it. The first new leaf is the hash of the last checkpoint. If a run is
 * interrupted, the next run completes it.
 * @throws AppError `invalid_request` with the reason. The database is then unchanged.
 */
export async function retireTlog(
  ctx: AuditContext,
  settings: TlogSettings,
  options: RetireOptions,
): Promise<RetiredLog> {
  const { pool } = ctx;
  const { origin, directory, reason } = options;
  const tree = await findTlogTree(pool);
  const existing = (await selectTlogRetirements(pool)).find((retirement) => retirement.origin === origin) ?? null;
  if (existing !== null && tree?.origin !== settings.origin) {
    throw new TlogRefused(
      `${origin} is retired. The log is now ${tree?.origin}, and the key in LOG_KEY_FILE is of ${settings.origin}.`,
    );
  }
  const plan = existing ?? (await planRetirement(pool, settings, options, tree));
  const { servedNote, policy } = plan;
  await assertExportable(directory, policy);
  const served = { size: parseCheckpoint(servedNote)?.size ?? 0, note: servedNote, policy };
  // Exports before it changes the database, so that a full disk leaves the database unchanged.
  const exported = await exportTlog(pool, directory, served);
  if (existing === null) {
    await withAuditEntry(
      ctx,
      { type: "Log", id: origin },
      async (tx) => {
        const { tree, followed, ...retirement } = await planRetirement(
          tx,
          settings,
          options,
          await lockTlogToRetire(tx),
        );
        if (retirement.servedNote !== servedNote) throw new TlogRefused("The log is in use. Stop its workers first.");
        followed.append(hash("sha256", retirement.lastNote, "buffer"));
        const after = { size: followed.size, root: followed.root() };
        await write(tx, [
          ...writeRetirement(tree, { ...retirement, reason }),
          ...growTree(tree, followed.grown(), after),
        ]);
        if (options.acceptLoss) await acceptLoss(tx);
      },
      { before: {}, after: () => ({ retiredFor: settings.origin }) },
    );
  }
  const begun = await findTlogTree(pool);
  const isPublished = begun === null || (await findPublished(pool)) !== null;
  const anchorsWritten = isPublished ? [] : await writeMissingAnchors(pool, begun, settings);
  await writeInto(directory, "last-checkpoint", plan.lastNote);
  const lastSize = parseCheckpoint(plan.lastNote)?.size ?? 0;
  return { origin, nextOrigin: settings.origin, size: plan.size, lastSize, exported, anchorsWritten };
}

/**
 * Checks that a log may be retired, and returns the record to write.
 * @throws AppError `invalid_request` with the reason.
 */
async function planRetirement(
  db: Queryable,
  settings: TlogSettings,
  { origin, reason, checkpoints, acceptLoss }: RetireOptions,
  tree: TlogTree | null,
): Promise<RetirementPlan> {
  const published = await findPublished(db);
  const retired = await selectTlogRetirements(db);
  if (reason.trim() === "") throw new TlogRefused("The reason is empty.");
  if (tree === null) throw new TlogRefused("This database has no log, or the log is in use. Stop its workers first.");
  if (tree.origin !== origin) throw new TlogRefused(`This database has the log ${tree.origin}, not ${origin}.`);
  if (published === null) throw new TlogRefused(`${origin} has served no checkpoint yet. Start its worker first.`);
  if (settings.origin === origin || retired.some((each) => each.origin === settings.origin)) {
    throw new TlogRefused(
      `LOG_KEY_FILE must have a key with a new name; ${settings.origin} is or was a log of this database.`,
    );
  }
  const { logs } = await parsePolicy(published.policy);
  const keys = logs.map(({ key }) => key).filter(({ name }) => name === origin);
  if (keys.some(({ publicKey }) => settings.keys.some((key) => isEqual(key.publicKey, publicKey)))) {
    throw new TlogRefused(`The key in LOG_KEY_FILE also signed ${origin}. Make a new one with: voucherctl log keygen`);
  }
  const known: CheckpointNote[] = [];
  for (const { file, text } of [{ file: "The served checkpoint", text: published.note }, ...checkpoints]) {
    const checkpoint = parseCheckpoint(text);
    if (checkpoint?.origin !== origin || !(await isSignedBy(checkpoint.note, keys))) {
      throw new TlogRefused(`${file} is not a checkpoint of ${origin}.`);
    }
    known.push(checkpoint);
  }
  const last = known.reduce((best, next) =>
    (next.size - best.size || next.note.signatures.length - best.note.signatures.length) > 0 ? next : best,
  );
  const followed = await followTree(db, tree, acceptLoss ? [] : known).catch((error) => {
    if (!(error instanceof TlogRefused) || acceptLoss) throw error;
    throw new TlogRefused(
      `${origin} has signed ${last.size} leaves, which this database does not have: its tree has ${tree.size}. ` +
        "With a copy of them, run: voucherctl log recover. Without one, --accept-loss retires the log.",
    );
  });
  for (const file of settings.anchors) {
    await readAnchor(file, settings.keys).catch(() => {
      throw new TlogRefused(`The anchor ${file} is of another log. Keep it, and name a new file in LOG_ANCHOR.`);
    });
  }
  const { policy, note: servedNote } = published;
  // The next log's keys also sign the largest checkpoint. Of several checkpoints with this size, uses the one with the
  // most signatures.
  const added = parseNote(await signNote(settings.keys, last.note.text))?.signatures ?? [];
  const lines = new Set([...last.note.signatures, ...added].map(({ line }) => `${line}\n`));
  const lastNote = `${last.note.text}\n${[...lines].join("")}`;
  return { origin, nextOrigin: settings.origin, size: tree.size, lastNote, servedNote, policy, reason, tree, followed };
}

/** @throws AppError if the directory contains anything other than an interrupted export of the log with this policy. */
async function assertExportable(directory: string, policy: string): Promise<void> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw new TlogRefused(`${directory} cannot be used: ${error.message}.`);
  });
  // Whether all files are unfinished, as after an export that stopped in its first file.
  const isBegun = names.every(isUnfinished);
  const exportedPolicy = (await readIfThere(join(directory, "policy")))?.toString();
  if (!isBegun && (exportedPolicy === undefined || !policy.startsWith(exportedPolicy))) {
    throw new TlogRefused(`${directory} is not empty. Give a new directory for the export.`);
  }
}
