import { changeWebhookRequest, webhookEndpoint, webhookId } from "../../contract/webhooks.ts";
import { changeWebhook as change } from "../../services/webhooks/partner-webhooks.ts";
import { endpoint } from "../endpoint.ts";
import { partnerKey } from "../middleware/authenticate.ts";

export const changeWebhook = endpoint({
  method: "patch",
  path: "/partner/webhooks/:id",
  operationId: "changeWebhook",
  summary: "Change a webhook endpoint",
  description:
    "Changes the fields that the body has. `enabled: true` enables an endpoint that you disabled, that answered 410, or that failed for five days. Only the operator can enable one that the operator disabled.",
  access: partnerKey("voucher.webhook"),
  parameters: { id: webhookId },
  body: changeWebhookRequest,
  response: webhookEndpoint,
  responseDescription: "The endpoint after the change.",
  handler: (ctx, { caller, parameters, body }) =>
    ctx.partnerCalls(() => change(ctx, caller.organizationId, parameters.id, body)),
});
