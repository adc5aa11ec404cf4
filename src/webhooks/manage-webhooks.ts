import { type AuditContext, withAuditEntry } from "../acts/with-audit-entry.ts";
import { findOrganization } from "../core/catalog/db/catalog.ts";
import { newId } from "../core/voucher/ids.ts";
import { AppError } from "../platform/api/errors.ts";
import { markSandbox } from "../platform/api/fields.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { selectAnyWebhook, selectOrganizationOfWebhook } from "./any-webhook.ts";
import type { DeliveriesResponse, ReplayRequest, ReplayResponse } from "./api/webhook-deliveries.ts";
import type { NewWebhook, NewWebhookView, RotatedWebhook, WebhookList, WebhookView } from "./api/webhooks.ts";
import { disableWebhookEndpoint, enableWebhookEndpoint, selectWebhookEndpoints } from "./db/webhook-endpoints.ts";
import { listDeliveries, replayDeliveries, type WebhookPage } from "./deliveries.ts";
import { createWebhook, rotateWebhook, viewWebhook, type WebhookDeps } from "./endpoints.ts";

type Deps = AuditContext & WebhookDeps;

/** Creates an endpoint for an organization. @throws AppError as `createWebhook`. */
export function createWebhookFor(ctx: Deps, organizationId: string, request: NewWebhook): Promise<NewWebhookView> {
  const id = newId("whk");
  return withAuditEntry(ctx, { type: "WebhookEndpoint", id }, (tx) =>
    createWebhook(ctx, tx, organizationId, request, { id, by: "operator" }),
  );
}

/** An organization's endpoints, oldest first. @throws AppError `not_found`. */
export async function listWebhooksOf(ctx: Pick<AuditContext, "pool">, organizationId: string): Promise<WebhookList> {
  const organization = await findOrganization(ctx.pool, organizationId);
  if (organization === null) throw new AppError("not_found", `There is no organization ${organizationId}.`);
  const endpoints = await selectWebhookEndpoints(ctx.pool, organizationId);
  return { webhooks: endpoints.map(viewWebhook), ...markSandbox(organization.sandbox) };
}

/**
 * Disables an endpoint until an operator enables it. A repeat changes nothing.
 * @throws AppError `webhook_not_found`.
 */
export const disableAnyWebhook = switchingBy((tx, id) =>
  disableWebhookEndpoint(tx, { id, disabledReason: "operator" }),
);

/**
 * Enables an endpoint, also one that an operator disabled. A repeat changes nothing.
 * @throws AppError `webhook_not_found`.
 */
export const enableAnyWebhook = switchingBy((tx, id) => enableWebhookEndpoint(tx, id, "operator"));

function switchingBy(change: (tx: Transaction, id: string) => Promise<unknown>) {
  return (ctx: AuditContext, id: string): Promise<WebhookView> =>
    withAuditEntry(ctx, { type: "WebhookEndpoint", id }, async (tx) => {
      await change(tx, id);
      return viewWebhook(await selectAnyWebhook(tx, id));
    });
}

/** Gives an endpoint a new secret. @throws AppError as `rotateWebhook`. */
export function rotateAnyWebhook(ctx: Deps, id: string): Promise<RotatedWebhook> {
  return withAuditEntry(ctx, { type: "WebhookEndpoint", id }, async (tx) =>
    rotateWebhook(ctx, tx, await selectOrganizationOfWebhook(tx, id), id),
  );
}

/** Sends finished deliveries of an endpoint again. @throws AppError `webhook_not_found`, `webhook_disabled`. */
export function replayAnyWebhook(ctx: AuditContext, id: string, request: ReplayRequest): Promise<ReplayResponse> {
  return withAuditEntry(
    ctx,
    { type: "WebhookEndpoint", id },
    async (tx) => {
      await selectAnyWebhook(tx, id);
      return replayDeliveries(tx, id, request);
    },
    { before: { replayed: 0 }, after: ({ replayed }) => ({ replayed }) },
  );
}

/**
 * A page of an endpoint's deliveries, newest first.
 * @throws AppError `webhook_not_found`, `invalid_request` for a malformed cursor.
 */
export async function listAnyWebhookDeliveries(
  ctx: Pick<AuditContext, "pool">,
  id: string,
  page: WebhookPage & { limit: number },
): Promise<DeliveriesResponse> {
  await selectAnyWebhook(ctx.pool, id);
  return listDeliveries(ctx, id, page);
}
