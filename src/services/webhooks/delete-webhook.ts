import type pg from "pg";
import { AppError } from "../../contract/errors.ts";
import type { DeletedWebhook } from "../../contract/webhooks.ts";
import { deleteWebhookEndpoint } from "../../db/webhook-endpoints.ts";
import { requireWebhookSecret, type WebhookDeps } from "./webhook-view.ts";

/** Deletes an endpoint for good. The sweeper deletes its deliveries. @throws AppError `webhooks_off`, `webhook_not_found`. */
export async function deleteWebhook(
  ctx: WebhookDeps & { pool: pg.Pool },
  organizationId: string,
  id: string,
): Promise<DeletedWebhook> {
  requireWebhookSecret(ctx);
  if (id.includes("\0") || !(await deleteWebhookEndpoint(ctx.pool, id, organizationId))) {
    throw new AppError("webhook_not_found");
  }
  return { id, deleted: true };
}
