import type pg from "pg";
import { until } from "./until.ts";

/**
 * Runs a call, and meanwhile ends each wait for the synchronous standby on the server, as an operator may. A commit
 * whose wait has ended is visible, although no standby has it. Returns the call's result, or null for an error, and the
 * number of waits.
 */
export async function whileWaitsEnd<T>(
  db: pg.Pool,
  call: () => Promise<T>,
  end: "pg_cancel_backend" | "pg_terminate_backend" = "pg_terminate_backend",
): Promise<{ result: T | null; waits: number }> {
  let isOver = false;
  let waits = 0;
  const called = call()
    .catch(() => null)
    .finally(() => {
      isOver = true;
    });
  await until(async () => {
    const { rowCount } = await db.query(`SELECT ${end}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`);
    waits += rowCount ?? 0;
    return isOver;
  });
  return { result: await called, waits };
}
