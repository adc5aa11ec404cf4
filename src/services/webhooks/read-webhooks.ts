import type pg from "pg";
import { AppError } from "../../contract/errors.ts";
import type { DeliveriesQuery, DeliveriesResponse, WebhookList, WebhookView } from "../../contract/webhooks.ts";
import type { Queryable } from "../../db/pool.ts";
import { findWebhookEndpoint, selectWebhookEndpoints, type WebhookRow } from "../../db/webhook-endpoints.ts";
import { listDeliveries } from "./list-deliveries.ts";
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
 * A page of an endpoint's deliveries, newest first.
 * @throws AppError `webhooks_off`, `webhook_not_found`, `invalid_request` for a cursor of another list.
 */
export async function readDeliveries(
  ctx: WebhookDeps & { pool: pg.Pool },
  organizationId: string,
  id: string,
  query: DeliveriesQuery,
): Promise<DeliveriesResponse> {
  requireWebhookSecret(ctx);
  await selectWebhook(ctx.pool, id, organizationId);
  return listDeliveries(ctx, { organizationId, endpointId: id, ...query });
}

/**
 * An endpoint's row, of any organization if `organizationId` is null.
 * @throws AppError `webhook_not_found`, also for endpoints of other organizations.
 */
export async function selectWebhook(db: Queryable, id: string, organizationId: string | null): Promise<WebhookRow> {
  // Postgres has no text with NUL; no id contains one.
  const row = id.includes("\0") ? null : await findWebhookEndpoint(db, id, organizationId);
  if (row !== null) return row;
  if (organizationId === null) throw new AppError("webhook_not_found", `There is no webhook endpoint ${id}.`);
  throw new AppError("webhook_not_found");
}
