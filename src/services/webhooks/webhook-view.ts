import type { WebhookConfig } from "../../config.ts";
import { AppError } from "../../contract/errors.ts";
import { pickFields } from "../../contract/fields.ts";
import { type WebhookView, webhookEndpoint } from "../../contract/webhooks.ts";
import type { WebhookRow } from "../../db/webhook-endpoints.ts";
import { findUrlProblem } from "../../domain/webhook-url.ts";

/** The part of a process's configuration that webhooks need. */
export interface WebhookDeps {
  config: { webhooks: WebhookConfig };
}

/** The root secret, from which the secrets of all endpoints are derived. @throws AppError `webhooks_off` when it is not configured. */
export function requireWebhookSecret({ config }: WebhookDeps): string {
  if (config.webhooks.secret === null) throw new AppError("webhooks_off");
  return config.webhooks.secret;
}

/** @throws AppError `invalid_request` unless requests may be sent to the URL. */
export function assertWebhookUrl({ config }: WebhookDeps, url: string): void {
  const problem = findUrlProblem(url, config.webhooks.allowPrivate);
  if (problem !== null) throw new AppError("invalid_request", `url ${problem}.`);
}

/** An endpoint as partners and operators see it. */
export function viewWebhook(row: WebhookRow): WebhookView {
  const iso = (time: Date | null) => time?.toISOString() ?? null;
  return pickFields(webhookEndpoint, {
    ...row,
    disabledAt: iso(row.disabledAt),
    failingSince: iso(row.failingSince),
    previousSecretUntil: iso(row.previousSecretUntil),
    createdAt: row.createdAt.toISOString(),
  });
}
