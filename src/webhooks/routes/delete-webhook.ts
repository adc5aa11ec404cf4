import { partnerKey } from "../../core/keys/routes/authenticate.ts";
import { type DepsOf, endpoint } from "../../platform/http/endpoint.ts";
import { deletedWebhook, webhookId } from "../api/webhooks.ts";
import { WEBHOOK } from "../declared.ts";
import type { WebhookCalls } from "../endpoints.ts";
import { deleteWebhook as remove } from "../partner-webhooks.ts";

export const deleteWebhook = endpoint({
  method: "delete",
  path: "/partner/webhooks/:id",
  operationId: "deleteWebhook",
  ownErrors: WEBHOOK,
  summary: "Delete a webhook endpoint",
  description: "Ends its deliveries, and deletes their list. A request that is on its way may still arrive.",
  access: partnerKey("voucher.webhook"),
  parameters: { id: webhookId },
  response: deletedWebhook,
  responseDescription: "The endpoint is deleted.",
  handler: (deps: WebhookCalls & DepsOf<typeof remove>, { caller, parameters }) =>
    deps.partnerCalls(caller, () => remove(deps, caller.organizationId, parameters.id)),
});
