import { partnerKey } from "../../core/keys/routes/authenticate.ts";
import { AppError } from "../../platform/api/errors.ts";
import type { FairSlots } from "../../platform/batching/fair-slots.ts";
import { type DepsOf, endpoint } from "../../platform/http/endpoint.ts";
import { ATTEMPT_MAX_MS } from "../../platform/outgoing/send-webhook.ts";
import { testedWebhook } from "../api/webhook-deliveries.ts";
import { webhookId } from "../api/webhooks.ts";
import { WEBHOOK, WEBHOOK_ERRORS } from "../declared.ts";
import { testWebhook as sendTest, type WebhookCalls } from "../endpoints.ts";

export const testWebhook = endpoint({
  method: "post",
  path: "/partner/webhooks/:id/test",
  operationId: "testWebhook",
  ownErrors: [...WEBHOOK, WEBHOOK_ERRORS.webhook_disabled],
  summary: "Send a test to a webhook endpoint",
  description:
    "Sends one signed event of the type `webhook.test` now, and returns the result within about " +
    `${ATTEMPT_MAX_MS / 1_000} seconds. It is not repeated and not listed among the deliveries.`,
  access: partnerKey("voucher.webhook"),
  parameters: { id: webhookId },
  response: testedWebhook,
  responseDescription: "The test was sent; `delivered` says whether it was accepted.",
  handler: (deps: WebhookCalls & DepsOf<typeof sendTest> & { webhookTests: FairSlots }, { caller, parameters }) => {
    const { organizationId, signal } = caller;
    if (!deps.webhookTests.hasRoom(organizationId)) throw new AppError("overloaded");
    const test = () =>
      sendTest(deps, (read) => deps.partnerCalls(caller, () => read(deps.pool)), organizationId, parameters.id);
    return deps.webhookTests.run(organizationId, test, signal);
  },
});
