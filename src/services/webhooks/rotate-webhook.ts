import { AppError } from "../../contract/errors.ts";
import { PREVIOUS_SECRET_HOURS, type RotatedWebhook } from "../../contract/webhooks.ts";
import type { Queryable } from "../../db/pool.ts";
import { rotateWebhookSecret } from "../../db/webhook-endpoints.ts";
import { deriveWebhookSecret } from "../../domain/webhook-signature.ts";
import { selectWebhook } from "./read-webhooks.ts";
import { requireWebhookSecret, type WebhookDeps } from "./webhook-view.ts";

/**
 * Gives an endpoint its next secret, which is shown only here. The one that it replaces also signs for 24 hours from now.
 * @param organizationId null for any organization.
 * @throws AppError `webhooks_off`, `webhook_not_found`, `webhook_limit` when ten earlier secrets still sign.
 */
export async function rotateWebhook(
  ctx: WebhookDeps,
  db: Queryable,
  organizationId: string | null,
  id: string,
): Promise<RotatedWebhook> {
  const rootSecret = requireWebhookSecret(ctx);
  await selectWebhook(db, id, organizationId);
  const rotated = await rotateWebhookSecret(db, id, organizationId, PREVIOUS_SECRET_HOURS);
  if (rotated === null) throw new AppError("webhook_limit");
  const { secretVersion, previousSecretUntil } = rotated;
  return {
    id,
    secret: deriveWebhookSecret(rootSecret, id, secretVersion),
    previousSecretUntil: previousSecretUntil.toISOString(),
  };
}
