import { webhookEndpoint, webhookId } from "../../contract/webhooks.ts";
import { readWebhook } from "../../services/webhooks/partner-webhooks.ts";
import { endpoint } from "../endpoint.ts";
import { partnerKey } from "../middleware/authenticate.ts";

export const webhook = endpoint({
  path: "/partner/webhooks/:id",
  operationId: "readWebhook",
  summary: "Read a webhook endpoint",
  description:
    "Shows whether it is enabled, and since when it has been failing. The secret is not shown again: rotate it if you have lost it.",
  access: partnerKey("voucher.webhook"),
  parameters: { id: webhookId },
  response: webhookEndpoint,
  responseDescription: "The endpoint.",
  handler: (ctx, { caller, parameters }) =>
    ctx.partnerCalls(() => readWebhook(ctx, ctx.pool, caller.organizationId, parameters.id)),
});
