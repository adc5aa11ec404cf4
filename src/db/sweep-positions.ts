import type { Queryable } from "./pool.ts";
import { bind, loadStatements } from "./statements.ts";

const sql = loadStatements(new URL("./sweep-positions.sql", import.meta.url), [
  "find_sweep_position",
  "move_sweep_position",
]);

/** A task of the sweeper that goes round and round. */
export type RollingTask = "restore_leases" | "remove_orphan_leases" | "check_chains";

/** Where a rolling task stopped and how long ago, in milliseconds; null before its first pass. */
export async function findSweepPosition(
  db: Queryable,
  task: RollingTask,
): Promise<{ position: string; ageMs: number } | null> {
  const { rows } = await db.query<{ position: string; age_ms: number }>(bind(sql.find_sweep_position, [task]));
  return rows[0] === undefined ? null : { position: rows[0].position, ageMs: rows[0].age_ms };
}

/** Remembers where a rolling task stopped. */
export async function moveSweepPosition(db: Queryable, task: RollingTask, position: string): Promise<void> {
  await db.query(bind(sql.move_sweep_position, [task, position]));
}
