import { partnerKey } from "../../core/keys/routes/authenticate.ts";
import { type DepsOf, endpoint } from "../../platform/http/endpoint.ts";
import { createWebhookRequest, newWebhook } from "../api/webhooks.ts";
import { WEBHOOK_ERRORS } from "../declared.ts";
import { createWebhook as create, type WebhookCalls } from "../endpoints.ts";
import { ENDPOINTS_MAX } from "../webhook-limits.ts";

export const createWebhook = endpoint({
  method: "post",
  path: "/partner/webhooks",
  operationId: "createWebhook",
  ownErrors: [WEBHOOK_ERRORS.webhooks_off, WEBHOOK_ERRORS.webhook_limit, "overloaded", "unavailable"],
  summary: "Create a webhook endpoint",
  description:
    "Events of your organization's vouchers are sent to `url` from now on, signed with the `secret` of the " +
    "response as [Standard Webhooks](https://www.standardwebhooks.com/) specifies. The secret is shown only here. " +
    `An organization has at most ${ENDPOINTS_MAX} endpoints. ` +
    "The name is resolved and its addresses are checked when a request " +
    "is sent, so send a test to see whether it arrives.",
  access: partnerKey("voucher.webhook"),
  body: createWebhookRequest,
  response: newWebhook,
  responseDescription: "The endpoint is created.",
  handler: (deps: WebhookCalls & DepsOf<typeof create>, { caller, body }) =>
    deps.partnerCalls(caller, () => create(deps, deps.pool, caller.organizationId, body)),
});
