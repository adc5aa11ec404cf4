import type pg from "pg";
import { AppError } from "../../contract/errors.ts";
import { REPLAY_MAX, type ReplayRequest, type ReplayResponse } from "../../contract/webhook-deliveries.ts";
import type { Transaction } from "../../db/pool.ts";
import { inTransaction, waitForLocks } from "../../db/transaction.ts";
import { lockEndpoints, type ReplayChoice, replayFinished } from "../../db/webhook-deliveries.ts";
import type { WebhookRequests } from "../../queues/webhook-requests.ts";
import { selectWebhook } from "./read-webhooks.ts";
import { requireWebhookSecret, type WebhookDeps } from "./webhook-view.ts";

/** Longest wait for the endpoint's row, which a worker locks while it records attempts. Milliseconds. */
const LOCK_WAIT_MS = 5_000;

/**
 * Sends finished deliveries of a partner's endpoint again.
 * @throws AppError `webhooks_off`, `webhook_not_found`, `webhook_disabled`.
 */
export async function replayWebhook(
  ctx: WebhookDeps & { pool: pg.Pool; webhookRequests: WebhookRequests },
  organizationId: string,
  endpointId: string,
  request: ReplayRequest,
): Promise<ReplayResponse> {
  requireWebhookSecret(ctx);
  const response = await inTransaction(ctx.pool, async (tx) => {
    await waitForLocks(tx, LOCK_WAIT_MS);
    const { disabledReason } = await selectWebhook(tx, endpointId, organizationId);
    if (disabledReason === "operator") throw new AppError("webhook_disabled");
    return replayDeliveries(tx, endpointId, request);
  });
  await ctx.webhookRequests.tryAdd([endpointId]);
  return response;
}

/**
 * Starts finished deliveries of an endpoint again: at most REPLAY_MAX, the oldest first. They keep their ids and each voucher's order. The
 * caller can request the job that sends them; otherwise the sweeper requests it.
 * @throws AppError `webhook_disabled`.
 */
export async function replayDeliveries(
  tx: Transaction,
  endpointId: string,
  request: ReplayRequest,
): Promise<ReplayResponse> {
  const [endpoint] = await lockEndpoints(tx, [endpointId]);
  if (endpoint?.enabled !== true)
    throw new AppError("webhook_disabled", `The webhook endpoint ${endpointId} is disabled. Enable it first.`);
  return { replayed: await replayFinished(tx, endpointId, endpoint.now, chooseReplay(request), REPLAY_MAX) };
}

/** The deliveries that a valid request selects. */
function chooseReplay({ from, to, eventIds }: ReplayRequest): ReplayChoice {
  if (eventIds !== undefined) return { eventIds };
  if (from === undefined || to === undefined) throw new AppError("invalid_request", "from and to are required.");
  return { from, to };
}
