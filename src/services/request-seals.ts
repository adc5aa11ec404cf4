import type { WorkerContext } from "../context.ts";
import { selectOverdueSeals } from "../db/events.ts";

/** An event that is Pending for longer than this has lost its seal job, or its job waits for a worker. Milliseconds. */
const OVERDUE_AFTER_MS = 5_000;
/** Events looked at in one pass. */
const EVENTS_MAX = 1_000;

/**
 * Adds seal jobs for vouchers whose events have been waiting for their seal.
 * @returns for how many vouchers.
 */
export async function requestSeals(ctx: Pick<WorkerContext, "pool" | "sealRequests">): Promise<number> {
  const voucherIds = await selectOverdueSeals(ctx.pool, OVERDUE_AFTER_MS, EVENTS_MAX);
  if (voucherIds.length > 0) await ctx.sealRequests.add(voucherIds);
  return voucherIds.length;
}
