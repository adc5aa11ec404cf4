import { readConfirmed } from "../../core/commit/confirm-reads.ts";
import { partnerKey } from "../../core/keys/routes/authenticate.ts";
import { type DepsOf, endpoint } from "../../platform/http/endpoint.ts";
import { deliveriesQuery, deliveriesResponse } from "../api/webhook-deliveries.ts";
import { webhookId } from "../api/webhooks.ts";
import { WEBHOOK } from "../declared.ts";
import { readDeliveries } from "../deliveries.ts";
import type { WebhookCalls } from "../endpoints.ts";

export const webhookDeliveries = endpoint({
  path: "/partner/webhooks/:id/deliveries",
  operationId: "listWebhookDeliveries",
  ownErrors: WEBHOOK,
  summary: "List the deliveries of a webhook endpoint",
  description:
    "What was sent to the endpoint in the last 30 days and what waits, with the state and the last result of " +
    "each. Of an answer, only its status is kept.",
  access: partnerKey("voucher.webhook"),
  parameters: { id: webhookId },
  query: deliveriesQuery,
  response: deliveriesResponse,
  responseDescription: "A page of deliveries.",
  // A delivery reveals that its event has happened, so the standbys must confirm the event first.
  handler: (
    deps: WebhookCalls & DepsOf<typeof readConfirmed> & DepsOf<typeof readDeliveries>,
    { caller, parameters, query },
  ) =>
    readConfirmed(deps, () =>
      deps.partnerCalls(caller, () => readDeliveries(deps, caller.organizationId, parameters.id, query)),
    ),
});
