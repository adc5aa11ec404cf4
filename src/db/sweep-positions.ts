import { bigint, text } from "./columns.ts";
import type { Queryable } from "./pool.ts";
import { execute, loadStatements, readRow } from "./statements.ts";

export const sql = loadStatements(new URL("./sweep-positions.sql", import.meta.url), {
  find_sweep_position: { position: text, ageMs: bigint },
  move_sweep_position: {},
});

/** A sweeper task that walks all rows or keys over several passes. Each pass continues where the previous one stopped. */
type ResumableTask = "restore_leases" | "remove_orphan_leases" | "check_chains";

/** Where a resumable task stopped, and how long ago in milliseconds; null before its first pass. */
export function findSweepPosition(
  db: Queryable,
  task: ResumableTask,
): Promise<{ position: string; ageMs: number } | null> {
  return readRow(db, sql.find_sweep_position, [task]);
}

/** Saves where a resumable task stopped. */
export async function moveSweepPosition(db: Queryable, task: ResumableTask, position: string): Promise<void> {
  await execute(db, sql.move_sweep_position, [task, position]);
}
