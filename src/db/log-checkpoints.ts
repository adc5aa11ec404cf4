import type { TreeHead } from "../../packages/tlog/src/checkpoint.ts";
import { bigint, bytea, text } from "./columns.ts";
import type { Queryable } from "./pool.ts";
import { execute, loadStatements, readRow, readRows } from "./statements.ts";

export const sql = loadStatements(new URL("./log-checkpoints.sql", import.meta.url), {
  find_published: { size: bigint, root: bytea, note: text, policy: text, ageMs: bigint },
  find_log_progress: { size: bigint, lagMs: bigint },
  publish_checkpoint: {},
  select_witness_sizes: { name: text, size: bigint },
  record_witness_sizes: {},
});

/** A checkpoint that is served, and the policy that it met. */
export interface Published extends TreeHead {
  note: string;
  policy: string;
}

/** The served checkpoint and its age in milliseconds, or null before the first one. */
export function findPublished(db: Queryable): Promise<(Published & { ageMs: number }) | null> {
  return readRow(db, sql.find_published, []);
}

/**
 * The size of the served checkpoint, and its lag in milliseconds: its age while leaves wait for a larger checkpoint, else 0. Null before the
 * first checkpoint.
 */
export function findLogProgress(db: Queryable): Promise<{ size: number; lagMs: number } | null> {
  return readRow(db, sql.find_log_progress, []);
}

/** Serves a checkpoint, unless a larger one is served already or its log was retired. Returns whether it is served. */
export async function publishCheckpoint(
  db: Queryable,
  { origin, size, root, note, policy }: Published & { origin: string },
): Promise<boolean> {
  return (await execute(db, sql.publish_checkpoint, [size, root, note, policy, origin])) === 1;
}

/** The tree size that each witness is known to have cosigned, by the witness's name. */
export async function selectWitnessSizes(db: Queryable, names: readonly string[]): Promise<Map<string, number>> {
  const rows = await readRows(db, sql.select_witness_sizes, [names]);
  return new Map(rows.map(({ name, size }) => [name, size]));
}

/** Records the tree size that each witness has cosigned. */
export async function recordWitnessSizes(db: Queryable, sizes: ReadonlyMap<string, number>): Promise<void> {
  if (sizes.size > 0) await execute(db, sql.record_witness_sizes, [[...sizes.keys()], [...sizes.values()]]);
}
