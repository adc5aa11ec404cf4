import type pg from "pg";
import type { Config } from "../../platform/config.ts";
import type { DatabaseFence } from "../../platform/db/database-fence.ts";
import { deleteOldReservations } from "../reserve/db/reservations.ts";
import { firstIdAt } from "../voucher/ids.ts";
import { findSweepPosition, moveSweepPosition } from "./db/sweep-positions.ts";

/**
 * Number of reservations read in one step, which takes some 20 ms. So one pass deletes more reservations than a hundred
 * keys can make between two passes at their rate limit.
 */
const PORTION = 1_000;

/**
 * Deletes reservations that ended unused long ago, and returns their number. Continues where the last pass stopped, in
 * the order of tickets, which is the order of the starts. Uses the clock that ignores jumps ahead. A jump would
 * otherwise delete reservations too early.
 */
export async function removeReservations(
  { pool, config, deployment }: { pool: pg.Pool; config: Config; deployment: Pick<DatabaseFence, "clock"> },
  untilMs: number,
): Promise<number> {
  await deployment.clock.ready();
  const endedBefore = new Date(deployment.clock.steadyNow().getTime() - config.reservationRetentionMs);
  const beforeTicket = firstIdAt("rsv", new Date(endedBefore.getTime() - config.reservationMaxMs));
  let after = (await findSweepPosition(pool, "remove_reservations"))?.position ?? "";
  let count = 0;
  do {
    const { read, deleted, last } = await deleteOldReservations(pool, {
      afterTicket: after,
      beforeTicket,
      endedBefore,
      limit: PORTION,
    });
    if (last === null) break;
    await moveSweepPosition(pool, { task: "remove_reservations", position: last });
    after = last;
    count += deleted;
    if (read < PORTION) break;
  } while (performance.now() < untilMs);
  return count;
}
