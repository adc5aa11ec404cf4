import { partnerKey } from "../../core/keys/routes/authenticate.ts";
import { type DepsOf, endpoint } from "../../platform/http/endpoint.ts";
import { replayRequest, replayResponse } from "../api/webhook-deliveries.ts";
import { webhookId } from "../api/webhooks.ts";
import { WEBHOOK, WEBHOOK_ERRORS } from "../declared.ts";
import { replayWebhook as replay } from "../deliveries.ts";
import type { WebhookCalls } from "../endpoints.ts";

export const replayWebhook = endpoint({
  method: "post",
  path: "/partner/webhooks/:id/replay",
  operationId: "replayWebhook",
  ownErrors: [...WEBHOOK, WEBHOOK_ERRORS.webhook_disabled],
  summary: "Send deliveries of a webhook endpoint again",
  description:
    "Sends finished deliveries again, with the same ids: those of events in a period, or those with the given " +
    "`eventIds`. At most 10,000, the oldest first: call it again with a later `from` for more. Deliveries that " +
    "still wait are not affected.",
  access: partnerKey("voucher.webhook"),
  parameters: { id: webhookId },
  body: replayRequest,
  response: replayResponse,
  responseDescription: "The deliveries are sent again within seconds.",
  handler: (deps: WebhookCalls & DepsOf<typeof replay>, { caller, parameters, body }) =>
    deps.partnerCalls(caller, () => replay(deps, caller.organizationId, parameters.id, body)),
});
