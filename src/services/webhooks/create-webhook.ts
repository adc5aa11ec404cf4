import { AppError } from "../../contract/errors.ts";
import type { NewWebhook, NewWebhookView } from "../../contract/webhooks.ts";
import type { Queryable } from "../../db/pool.ts";
import {
  findWebhookEndpoint,
  insertWebhookEndpoint,
  selectWebhookEndpoints,
  type WebhookActor,
} from "../../db/webhook-endpoints.ts";
import { newId } from "../../domain/ids.ts";
import { deriveWebhookSecret } from "../../domain/webhook-signature.ts";
import { assertWebhookUrl, requireWebhookSecret, viewWebhook, type WebhookDeps } from "./webhook-view.ts";

/** Most endpoints of an organization. The table defines the same number of places. */
const ENDPOINTS_MAX = 20;
/** While places are free, an insert fails only when a concurrent one took the same place. So this many attempts suffice unless endpoints are deleted. */
const ATTEMPTS_MAX = ENDPOINTS_MAX + 1;

/**
 * Creates an endpoint and returns it with its secret, which is shown only here.
 * @throws AppError `webhooks_off`, `invalid_request` for its URL, `webhook_limit`.
 */
export async function createWebhook(
  ctx: WebhookDeps,
  db: Queryable,
  organizationId: string,
  request: NewWebhook,
  { id = newId("whk"), by = "partner" }: { id?: string; by?: WebhookActor } = {},
): Promise<NewWebhookView> {
  const rootSecret = requireWebhookSecret(ctx);
  assertWebhookUrl(ctx, request.url);
  for (let attempt = 1; !(await insertWebhookEndpoint(db, { ...request, id, organizationId }, by)); attempt++) {
    const existing = await selectWebhookEndpoints(db, organizationId);
    if (existing.length >= ENDPOINTS_MAX) throw new AppError("webhook_limit");
    if (attempt === ATTEMPTS_MAX) throw new AppError("overloaded");
  }
  const endpoint = await findWebhookEndpoint(db, id, organizationId);
  if (endpoint === null) throw new AppError("webhook_not_found");
  return { ...viewWebhook(endpoint), secret: deriveWebhookSecret(rootSecret, id, 1) };
}
