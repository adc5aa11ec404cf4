import { AppError } from "../../contract/errors.ts";
import type { WebhookList, WebhookView } from "../../contract/webhooks.ts";
import type { Queryable } from "../../db/pool.ts";
import { findWebhookEndpoint, selectWebhookEndpoints, type WebhookRow } from "../../db/webhook-endpoints.ts";
import { requireWebhookSecret, viewWebhook, type WebhookDeps } from "./webhook-view.ts";

/** An organization's endpoints, oldest first. @throws AppError `webhooks_off`. */
export async function listWebhooks(ctx: WebhookDeps, db: Queryable, organizationId: string): Promise<WebhookList> {
  requireWebhookSecret(ctx);
  return { webhooks: (await selectWebhookEndpoints(db, organizationId)).map(viewWebhook) };
}

/** One endpoint. @throws AppError `webhooks_off`, `webhook_not_found`, also for endpoints of other organizations. */
export async function readWebhook(
  ctx: WebhookDeps,
  db: Queryable,
  organizationId: string,
  id: string,
): Promise<WebhookView> {
  requireWebhookSecret(ctx);
  return viewWebhook(await selectWebhook(db, id, organizationId));
}

/**
 * An endpoint's row, of any organization if `organizationId` is null.
 * @throws AppError `webhook_not_found`, also for endpoints of other organizations.
 */
export async function selectWebhook(db: Queryable, id: string, organizationId: string | null): Promise<WebhookRow> {
  // Postgres has no text with NUL; no id contains one.
  const row = id.includes("\0") ? null : await findWebhookEndpoint(db, id, organizationId);
  if (row === null) throw new AppError("webhook_not_found");
  return row;
}
