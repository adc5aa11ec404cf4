import type pg from "pg";
import { findOrganization } from "../core/catalog/db/catalog.ts";
import { AppError } from "../platform/api/errors.ts";
import { markSandbox } from "../platform/api/fields.ts";
import { selectAnyWebhook } from "./any-webhook.ts";
import type { DeliveriesResponse } from "./api/webhook-deliveries.ts";
import type { WebhookList } from "./api/webhooks.ts";
import { selectWebhookEndpoints } from "./db/webhook-endpoints.ts";
import { listDeliveries, type WebhookPage } from "./deliveries.ts";
import { viewWebhook } from "./endpoints.ts";

/** An organization's endpoints, oldest first. @throws AppError `not_found`. */
export async function listWebhooksOf(ctx: { pool: pg.Pool }, organizationId: string): Promise<WebhookList> {
  const organization = await findOrganization(ctx.pool, organizationId);
  if (organization === null) throw new AppError("not_found", `There is no organization ${organizationId}.`);
  const endpoints = await selectWebhookEndpoints(ctx.pool, organizationId);
  return { webhooks: endpoints.map(viewWebhook), ...markSandbox(organization.sandbox) };
}

/**
 * A page of an endpoint's deliveries, newest first.
 * @throws AppError `webhook_not_found`, `invalid_request` for a malformed cursor.
 */
export async function listAnyWebhookDeliveries(
  ctx: { pool: pg.Pool },
  id: string,
  page: WebhookPage & { limit: number },
): Promise<DeliveriesResponse> {
  await selectAnyWebhook(ctx.pool, id);
  return listDeliveries(ctx, id, page);
}
