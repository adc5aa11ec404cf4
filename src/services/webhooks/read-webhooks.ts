import type pg from "pg";
import { AppError } from "../../contract/errors.ts";
import type { DeliveriesQuery, DeliveriesResponse } from "../../contract/webhook-deliveries.ts";
import type { WebhookList, WebhookView } from "../../contract/webhooks.ts";
import type { Queryable } from "../../db/pool.ts";
import { findWebhookEndpoint, selectWebhookEndpoints, type WebhookRow } from "../../db/webhook-endpoints.ts";
import { listDeliveries } from "./list-deliveries.ts";
import { requireWebhookSecret, viewWebhook, type WebhookDeps } from "./webhook-view.ts";

/** Lists an organization's endpoints, oldest first. @throws AppError `webhooks_off`. */
export async function listWebhooks(ctx: WebhookDeps, db: Queryable, organizationId: string): Promise<WebhookList> {
  requireWebhookSecret(ctx);
  return { webhooks: (await selectWebhookEndpoints(db, organizationId)).map(viewWebhook) };
}

/** Reads one endpoint. @throws AppError `webhooks_off`; `webhook_not_found`, also for endpoints of other organizations. */
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
 * Reads a page of an endpoint's deliveries, newest first.
 * @throws AppError `webhooks_off`, `webhook_not_found`, `invalid_request` for a malformed cursor.
 */
export async function readDeliveries(
  ctx: WebhookDeps & { pool: pg.Pool },
  organizationId: string,
  id: string,
  query: DeliveriesQuery,
): Promise<DeliveriesResponse> {
  requireWebhookSecret(ctx);
  await selectWebhook(ctx.pool, id, organizationId);
  return listDeliveries(ctx, { endpointId: id, ...query });
}

/**
 * Reads an endpoint's row. If `organizationId` is null, the endpoint may belong to any organization.
 * @throws AppError `webhook_not_found`, also for endpoints of other organizations.
 */
export async function selectWebhook(db: Queryable, id: string, organizationId: string | null): Promise<WebhookRow> {
  // No id contains NUL, and Postgres does not accept NUL in text.
  const row = id.includes("\0") ? null : await findWebhookEndpoint(db, id, organizationId);
  if (row !== null) return row;
  if (organizationId === null) throw new AppError("webhook_not_found", `There is no webhook endpoint ${id}.`);
  throw new AppError("webhook_not_found");
}
