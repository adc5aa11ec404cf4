import type pg from "pg";
import { AppError } from "../../contract/errors.ts";
import type { ReplayRequest, ReplayResponse } from "../../contract/webhooks.ts";
import type { ReplayChoice } from "../../db/webhook-deliveries.ts";
import { selectWebhook } from "./read-webhooks.ts";
import { replayDeliveries } from "./replay-deliveries.ts";
import { requireWebhookSecret, type WebhookDeps } from "./webhook-view.ts";

/**
 * Sends finished deliveries of a partner's endpoint again.
 * @throws AppError `webhooks_off`, `webhook_not_found`, `webhook_disabled`.
 */
export async function replayWebhook(
  ctx: WebhookDeps & { pool: pg.Pool },
  organizationId: string,
  endpointId: string,
  request: ReplayRequest,
): Promise<ReplayResponse> {
  requireWebhookSecret(ctx);
  const { disabledReason } = await selectWebhook(ctx.pool, endpointId, organizationId);
  if (disabledReason === "operator") throw new AppError("webhook_disabled");
  if (disabledReason !== null)
    throw new AppError("webhook_disabled", "This webhook endpoint is disabled. Enable it first.");
  return replayDeliveries(ctx, { organizationId, endpointId, ...chooseReplay(request) });
}

/** The deliveries that a valid request selects. */
export function chooseReplay({ from, to, eventIds }: ReplayRequest): ReplayChoice {
  if (eventIds !== undefined) return { eventIds };
  if (from === undefined || to === undefined) throw new AppError("invalid_request", "from and to are required.");
  return { from, to };
}
