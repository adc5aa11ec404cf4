import { webhookList } from "../../contract/webhooks.ts";
import { listWebhooks } from "../../services/webhooks/partner-webhooks.ts";
import { endpoint } from "../endpoint.ts";
import { partnerKey } from "../middleware/authenticate.ts";

export const webhooks = endpoint({
  path: "/partner/webhooks",
  operationId: "listWebhooks",
  summary: "List your organization's webhook endpoints",
  description: "All endpoints, without their secrets.",
  access: partnerKey("voucher.webhook"),
  response: webhookList,
  responseDescription: "The endpoints.",
  handler: (ctx, { caller }) => ctx.partnerCalls(() => listWebhooks(ctx, ctx.pool, caller.organizationId)),
});
