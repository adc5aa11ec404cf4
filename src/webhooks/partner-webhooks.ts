import type pg from "pg";
import { AppError } from "../platform/api/errors.ts";
import type { Queryable } from "../platform/db/pool.ts";
import { inTransaction } from "../platform/db/transaction.ts";
import type { DeletedWebhook, WebhookChange, WebhookList, WebhookView } from "./api/webhooks.ts";
import {
  changeWebhookEndpoint,
  deleteWebhookEndpoint,
  disableWebhookEndpoint,
  enableWebhookEndpoint,
  selectWebhookEndpoints,
} from "./db/webhook-endpoints.ts";
import { WEBHOOK_ERRORS } from "./declared.ts";
import { assertWebhookUrl, requireWebhookSecret, selectWebhook, viewWebhook, type WebhookDeps } from "./endpoints.ts";

/** Lists an organization's endpoints, oldest first. @throws AppError `webhooks_off`. */
export async function listWebhooks(ctx: WebhookDeps, db: Queryable, organizationId: string): Promise<WebhookList> {
  requireWebhookSecret(ctx);
  return { webhooks: (await selectWebhookEndpoints(db, organizationId)).map(viewWebhook) };
}

/**
 * Reads one endpoint.
 * @throws AppError `webhooks_off`; `webhook_not_found`, including for endpoints of other organizations.
 */
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
 * Applies a partner's change to an endpoint, completely or not at all.
 * @throws AppError `webhooks_off`, `webhook_not_found`, `invalid_request` for its URL, `webhook_disabled` when the
 * change would enable an endpoint that an operator has disabled.
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
    if (change.enabled === false) await disableWebhookEndpoint(tx, { id, disabledReason: "partner" });
    const changed = await selectWebhook(tx, id, organizationId);
    if (change.enabled === true && !changed.enabled) throw new AppError(WEBHOOK_ERRORS.webhook_disabled);
    return viewWebhook(changed);
  });
}

/**
 * Deletes an endpoint permanently. The sweeper deletes its deliveries later.
 * @throws AppError `webhooks_off`, `webhook_not_found`.
 */
export async function deleteWebhook(
  ctx: WebhookDeps & { pool: pg.Pool },
  organizationId: string,
  id: string,
): Promise<DeletedWebhook> {
  requireWebhookSecret(ctx);
  if (id.includes("\0") || !(await deleteWebhookEndpoint(ctx.pool, { id, organizationId }))) {
    throw new AppError(WEBHOOK_ERRORS.webhook_not_found);
  }
  return { id, deleted: true };
}
