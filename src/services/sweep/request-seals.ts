import type pg from "pg";
import { selectOverdueSeals } from "../../db/events.ts";
import type { SealRequests } from "../../queues/seal-requests.ts";

/** An event Pending for longer than this has lost its seal job, or the job waits for a worker. Milliseconds. */
const OVERDUE_AFTER_MS = 5_000;
/** Events checked in one pass. */
const EVENTS_MAX = 1_000;

/** Adds seal jobs for overdue Pending events, as far as the queue has room; returns the number of vouchers. */
export async function requestSeals(ctx: { pool: pg.Pool; sealRequests: SealRequests }): Promise<number> {
  const voucherIds = await selectOverdueSeals(ctx.pool, OVERDUE_AFTER_MS, EVENTS_MAX);
  return voucherIds.length === 0 ? 0 : ctx.sealRequests.add(voucherIds);
}
