import { partnerKey } from "../../core/keys/routes/authenticate.ts";
import { type DepsOf, endpoint } from "../../platform/http/endpoint.ts";
import { webhookList } from "../api/webhooks.ts";
import { WEBHOOK_ERRORS } from "../declared.ts";
import type { WebhookCalls } from "../endpoints.ts";
import { listWebhooks } from "../partner-webhooks.ts";

export const webhooks = endpoint({
  path: "/partner/webhooks",
  operationId: "listWebhooks",
  ownErrors: [WEBHOOK_ERRORS.webhooks_off, "overloaded", "unavailable"],
  summary: "List your organization's webhook endpoints",
  description: "All endpoints, without their secrets.",
  access: partnerKey("voucher.webhook"),
  response: webhookList,
  responseDescription: "The endpoints.",
  handler: (deps: WebhookCalls & DepsOf<typeof listWebhooks>, { caller }) =>
    deps.partnerCalls(caller, () => listWebhooks(deps, deps.pool, caller.organizationId)),
});
