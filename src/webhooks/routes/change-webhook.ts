import { partnerKey } from "../../core/keys/routes/authenticate.ts";
import { type DepsOf, endpoint } from "../../platform/http/endpoint.ts";
import { changeWebhookRequest, webhookEndpoint, webhookId } from "../api/webhooks.ts";
import { WEBHOOK, WEBHOOK_ERRORS } from "../declared.ts";
import type { WebhookCalls } from "../endpoints.ts";
import { changeWebhook as change } from "../partner-webhooks.ts";
import { FAILING_MAX_DAYS } from "../webhook-limits.ts";

export const changeWebhook = endpoint({
  method: "patch",
  path: "/partner/webhooks/:id",
  operationId: "changeWebhook",
  ownErrors: [...WEBHOOK, WEBHOOK_ERRORS.webhook_disabled],
  summary: "Change a webhook endpoint",
  description:
    "Changes the fields that the body has. `enabled: true` enables an endpoint that you disabled, that answered " +
    `410, or that failed for ${FAILING_MAX_DAYS} days. Only the operator can enable one that the operator disabled.`,
  access: partnerKey("voucher.webhook"),
  parameters: { id: webhookId },
  body: changeWebhookRequest,
  response: webhookEndpoint,
  responseDescription: "The endpoint after the change.",
  handler: (deps: WebhookCalls & DepsOf<typeof change>, { caller, parameters, body }) =>
    deps.partnerCalls(caller, () => change(deps, caller.organizationId, parameters.id, body)),
});
