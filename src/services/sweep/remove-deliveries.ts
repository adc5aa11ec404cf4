import type pg from "pg";
import { DELIVERIES_KEPT_DAYS } from "../../contract/webhook-deliveries.ts";
import { inTransaction } from "../../db/transaction.ts";
import { deleteDeletedEndpoints, deleteOldDeliveries, endPendingDeliveries } from "../../db/webhook-deliveries.ts";

/** Deliveries in one transaction: some 20 ms. */
const PORTION = 1_000;

/**
 * Ends the Pending deliveries of disabled endpoints, deletes old deliveries and those of deleted endpoints, then these endpoints.
 * Returns how many deliveries it ended or deleted.
 */
export async function removeDeliveries({ pool }: { pool: pg.Pool }, untilMs: number): Promise<number> {
  let count = 0;
  for (const step of [
    () => inTransaction(pool, (tx) => endPendingDeliveries(tx, PORTION)),
    () => deleteOldDeliveries(pool, DELIVERIES_KEPT_DAYS, PORTION),
  ]) {
    let changed: number;
    do {
      changed = await step();
      count += changed;
    } while (changed > 0 && performance.now() < untilMs);
  }
  await deleteDeletedEndpoints(pool);
  return count;
}
