import { partnerKey } from "../../core/keys/routes/authenticate.ts";
import { type DepsOf, endpoint } from "../../platform/http/endpoint.ts";
import { rotatedWebhook, webhookId } from "../api/webhooks.ts";
import { WEBHOOK, WEBHOOK_ERRORS } from "../declared.ts";
import { rotateWebhook as rotate, type WebhookCalls } from "../endpoints.ts";
import { PREVIOUS_SECRET_HOURS, PREVIOUS_SECRETS_MAX } from "../webhook-limits.ts";

export const rotateWebhook = endpoint({
  method: "post",
  path: "/partner/webhooks/:id/rotate",
  operationId: "rotateWebhook",
  ownErrors: [...WEBHOOK, WEBHOOK_ERRORS.webhook_limit],
  summary: "Give a webhook endpoint a new secret",
  description:
    `For ${PREVIOUS_SECRET_HOURS} hours, each request is also signed with the previous secret. Another rotation ` +
    `within that time ends no earlier secret: each signs for its ${PREVIOUS_SECRET_HOURS} hours. While ` +
    `${PREVIOUS_SECRETS_MAX} earlier secrets sign, a further rotation is refused.`,
  access: partnerKey("voucher.webhook"),
  parameters: { id: webhookId },
  response: rotatedWebhook,
  responseDescription: "The new secret, which is shown only here.",
  handler: (deps: WebhookCalls & DepsOf<typeof rotate>, { caller, parameters }) =>
    deps.partnerCalls(caller, () => rotate(deps, deps.pool, caller.organizationId, parameters.id)),
});
