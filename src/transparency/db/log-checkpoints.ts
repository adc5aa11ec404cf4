import type { TreeHead } from "#tlog/checkpoint.ts";
import { arrayOf, bigint, bytea, text } from "../../platform/db/columns.ts";
import type { Queryable } from "../../platform/db/pool.ts";
import { Statements } from "../../platform/db/statements.ts";

export const sql = new Statements(new URL("./log-checkpoints.sql", import.meta.url));

/** A served checkpoint, and the policy that it met. */
export interface Published extends TreeHead {
  note: string;
  policy: string;
}

export const findPublished = sql.row("find_published", {
  size: bigint,
  root: bytea,
  note: text,
  policy: text,
  ageMs: bigint,
});
export const findTlogProgress = sql.row("find_log_progress", { size: bigint, lagMs: bigint });
const publish = sql.executeOne("publish_checkpoint", {
  size: bigint,
  root: bytea,
  note: text,
  policy: text,
  origin: text,
});
const selectSizes = sql.rows("select_witness_sizes", { name: text, size: bigint }, { name: arrayOf(text) });
const recordSizes = sql.execute("record_witness_sizes", { name: arrayOf(text), size: arrayOf(bigint) });

/** Serves a checkpoint, unless a larger one is served or its log was retired. Returns whether it is served. */
export function publishCheckpoint(db: Queryable, checkpoint: Published & { origin: string }): Promise<boolean> {
  const { size, root, note, policy, origin } = checkpoint;
  return publish(db, { size, root, note, policy, origin });
}

/** For each witness, by name: the size of the tree that it is known to have cosigned. */
export async function selectWitnessSizes(db: Queryable, names: readonly string[]): Promise<Map<string, number>> {
  return new Map((await selectSizes(db, names)).map(({ name, size }) => [name, size]));
}

/** Records the size of the tree that each witness has cosigned. */
export async function recordWitnessSizes(db: Queryable, sizes: ReadonlyMap<string, number>): Promise<void> {
  if (sizes.size > 0) await recordSizes(db, { name: [...sizes.keys()], size: [...sizes.values()] });
}
