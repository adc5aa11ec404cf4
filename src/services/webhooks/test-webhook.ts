import { AppError } from "../../contract/errors.ts";
import { markSandbox } from "../../contract/fields.ts";
import type { TestedWebhook } from "../../contract/webhook-deliveries.ts";
import { WEBHOOK_TEST_TYPE, type WebhookEvent } from "../../contract/webhooks.ts";
import { findOrganization } from "../../db/catalog.ts";
import type { Queryable } from "../../db/pool.ts";
import { newId } from "../../domain/ids.ts";
import { openSigningKeys, webhookHeaders } from "../../domain/webhook-signature.ts";
import { selectWebhook } from "./read-webhooks.ts";
import { sendWebhook, type WebhookSender } from "./send-webhook.ts";
import { requireWebhookSecret, type WebhookDeps } from "./webhook-view.ts";

/**
 * Sends one signed test event to an endpoint and returns the result. The endpoint may be disabled by its partner or by failures. A test is
 * never retried and changes nothing. If `organizationId` is null, the endpoint may belong to any organization.
 * @throws AppError `webhooks_off`, `webhook_not_found`, `webhook_disabled` when an operator has disabled it.
 */
export async function testWebhook(
  ctx: WebhookDeps & { webhookSender: WebhookSender },
  db: Queryable,
  organizationId: string | null,
  id: string,
): Promise<TestedWebhook> {
  const rootSecret = requireWebhookSecret(ctx);
  const endpoint = await selectWebhook(db, id, organizationId);
  if (endpoint.disabledReason === "operator") throw new AppError("webhook_disabled");
  const event: WebhookEvent = {
    type: WEBHOOK_TEST_TYPE,
    timestamp: endpoint.readAt.toISOString(),
    data: { webhookId: id, ...markSandbox((await findOrganization(db, endpoint.organizationId))?.sandbox === true) },
  };
  const body = JSON.stringify(event);
  const signedContent = {
    id: newId("tst"),
    timestampSeconds: Math.floor(endpoint.readAt.getTime() / 1_000),
    body,
    keys: openSigningKeys(rootSecret, endpoint),
  };
  const startedAt = performance.now();
  const result = await sendWebhook(ctx, { url: endpoint.url, headers: webhookHeaders(signedContent), body });
  const { status, failure } = result ?? { status: null, failure: "timeout" };
  return { delivered: failure === null, status, failure, durationMs: Math.round(performance.now() - startedAt) };
}
