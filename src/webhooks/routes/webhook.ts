import { partnerKey } from "../../core/keys/routes/authenticate.ts";
import { type DepsOf, endpoint } from "../../platform/http/endpoint.ts";
import { webhookEndpoint, webhookId } from "../api/webhooks.ts";
import { WEBHOOK } from "../declared.ts";
import type { WebhookCalls } from "../endpoints.ts";
import { readWebhook } from "../partner-webhooks.ts";

export const webhook = endpoint({
  path: "/partner/webhooks/:id",
  operationId: "readWebhook",
  ownErrors: WEBHOOK,
  summary: "Read a webhook endpoint",
  description:
    "Shows whether it is enabled, and since when it has been failing. The secret is not shown again: rotate it if " +
    "you have lost it.",
  access: partnerKey("voucher.webhook"),
  parameters: { id: webhookId },
  response: webhookEndpoint,
  responseDescription: "The endpoint.",
  handler: (deps: WebhookCalls & DepsOf<typeof readWebhook>, { caller, parameters }) =>
    deps.partnerCalls(caller, () => readWebhook(deps, deps.pool, caller.organizationId, parameters.id)),
});
