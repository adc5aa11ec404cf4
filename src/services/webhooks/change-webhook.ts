import type pg from "pg";
import { AppError } from "../../contract/errors.ts";
import type { WebhookChange, WebhookView } from "../../contract/webhooks.ts";
import { inTransaction } from "../../db/transaction.ts";
import { changeWebhookEndpoint, disableWebhookEndpoint, enableWebhookEndpoint } from "../../db/webhook-endpoints.ts";
import { selectWebhook } from "./read-webhooks.ts";
import { assertWebhookUrl, requireWebhookSecret, viewWebhook, type WebhookDeps } from "./webhook-view.ts";

/**
 * Applies a partner's change to an endpoint, completely or not at all.
 * @throws AppError `webhooks_off`, `webhook_not_found`, `invalid_request` for its URL, `webhook_disabled` when the change enables an endpoint
 * that an operator has disabled.
 */
export async function changeWebhook(
  ctx: WebhookDeps & { pool: pg.Pool },
  organizationId: string,
  id: string,
  change: WebhookChange,
): Promise<WebhookView> {
  requireWebhookSecret(ctx);
  if (change.url !== undefined) assertWebhookUrl(ctx, change.url);
  return inTransaction(ctx.pool, async (tx) => {
    await selectWebhook(tx, id, organizationId);
    await changeWebhookEndpoint(tx, id, organizationId, change);
    if (change.enabled === true) await enableWebhookEndpoint(tx, id, "partner");
    if (change.enabled === false) await disableWebhookEndpoint(tx, id, "partner");
    const changed = await selectWebhook(tx, id, organizationId);
    if (change.enabled === true && !changed.enabled) throw new AppError("webhook_disabled");
    return viewWebhook(changed);
  });
}
