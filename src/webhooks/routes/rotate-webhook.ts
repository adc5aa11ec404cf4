import { partnerKey } from "../../core/keys/routes/authenticate.ts";
import { type DepsOf, endpoint } from "../../platform/http/endpoint.ts";
import { rotatedWebhook, webhookId } from "../api/webhooks.ts";
import { rotateWebhook as rotate, type WebhookCalls } from "../endpoints.ts";

export const rotateWebhook = endpoint({
  method: "post",
  path: "/partner/webhooks/:id/rotate",
  operationId: "rotateWebhook",
  summary: "Give a webhook endpoint a new secret",
  description:
    "For 24 hours, each request has two signatures: of the new secret and of the previous one. Rotating again " +
    "within that time ends the oldest one at once.",
  access: partnerKey("voucher.webhook"),
  parameters: { id: webhookId },
  response: rotatedWebhook,
  responseDescription: "The new secret, which is shown only here.",
  handler: (deps: WebhookCalls & DepsOf<typeof rotate>, { caller, parameters }) =>
    deps.partnerCalls(caller, () => rotate(deps, deps.pool, caller.organizationId, parameters.id)),
});
