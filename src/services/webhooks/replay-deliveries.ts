import type pg from "pg";
import { AppError } from "../../contract/errors.ts";
import { REPLAY_MAX, type ReplayResponse } from "../../contract/webhooks.ts";
import { inTransaction, waitForLocks } from "../../db/transaction.ts";
import { lockEndpoints, type ReplayChoice, replayFinished } from "../../db/webhook-deliveries.ts";

/** Longest wait for an endpoint whose attempts are being recorded. Milliseconds. */
const LOCK_WAIT_MS = 5_000;

/**
 * Sends finished deliveries of an endpoint again, with the same ids and in the order of each voucher, at most REPLAY_MAX, the oldest first.
 * The sweeper requests the job. Deliveries of a disabled endpoint stay as they are.
 * @throws AppError `webhook_not_found`.
 */
export function replayDeliveries(
  { pool }: { pool: pg.Pool },
  { organizationId, endpointId, ...choice }: { organizationId: string; endpointId: string } & ReplayChoice,
): Promise<ReplayResponse> {
  return inTransaction(pool, async (tx) => {
    await waitForLocks(tx, LOCK_WAIT_MS);
    const [endpoint] = await lockEndpoints(tx, [endpointId]);
    if (endpoint?.organizationId !== organizationId) throw new AppError("webhook_not_found");
    if (!endpoint.enabled) return { replayed: 0 };
    return { replayed: await replayFinished(tx, endpointId, endpoint.now, choice, REPLAY_MAX) };
  });
}
