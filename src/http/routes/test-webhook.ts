import { AppError } from "../../contract/errors.ts";
import { testedWebhook } from "../../contract/webhook-deliveries.ts";
import { webhookId } from "../../contract/webhooks.ts";
import { testWebhook as test } from "../../services/webhooks/endpoints.ts";
import { endpoint } from "../endpoint.ts";
import { partnerKey } from "../middleware/authenticate.ts";

export const testWebhook = endpoint({
  method: "post",
  path: "/partner/webhooks/:id/test",
  operationId: "testWebhook",
  summary: "Send a test to a webhook endpoint",
  description:
    "Sends one signed event of the type `webhook.test` now, and returns the result within about 15 seconds. It is not repeated and not listed among the deliveries.",
  access: partnerKey("voucher.webhook"),
  parameters: { id: webhookId },
  response: testedWebhook,
  responseDescription: "The test was sent; `delivered` says whether it was accepted.",
  handler: (ctx, { caller: { organizationId }, parameters }) => {
    if (!ctx.webhookTests.hasRoom(organizationId)) throw new AppError("overloaded");
    return ctx.webhookTests.run(organizationId, () => test(ctx, ctx.pool, organizationId, parameters.id));
  },
});
