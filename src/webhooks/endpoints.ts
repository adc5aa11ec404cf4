import type pg from "pg";
import type { Bulkhead } from "../core/callers/bulkhead.ts";
import { findOrganization } from "../core/catalog/db/catalog.ts";
import { newId } from "../core/voucher/ids.ts";
import { AppError, invalidField } from "../platform/api/errors.ts";
import { markSandbox, pickFields } from "../platform/api/fields.ts";
import type { Config } from "../platform/config.ts";
import type { Queryable } from "../platform/db/pool.ts";
import { sendWebhook, type WebhookSender } from "../platform/outgoing/send-webhook.ts";
import { deriveWebhookSecret, openSigningKeys, webhookHeaders } from "../platform/outgoing/webhook-signature.ts";
import { findUrlProblem } from "../platform/outgoing/webhook-url.ts";
import type { TestedWebhook } from "./api/webhook-deliveries.ts";
import {
  type NewWebhook,
  type NewWebhookView,
  type RotatedWebhook,
  WEBHOOK_TEST_TYPE,
  type WebhookBody,
  type WebhookView,
  webhookEndpoint,
} from "./api/webhooks.ts";
import {
  insertWebhookEndpoint,
  rotateWebhookSecret,
  selectWebhookEndpoints,
  type WebhookRow,
} from "./db/webhook-endpoints.ts";
import { WEBHOOK_ERRORS, webhookVariables } from "./declared.ts";
import { ENDPOINTS_MAX, PREVIOUS_SECRET_HOURS, PREVIOUS_SECRETS_MAX } from "./webhook-limits.ts";

/** The connections for partners' calls about webhook endpoints. */
export interface WebhookCalls {
  pool: pg.Pool;
  partnerCalls: Bulkhead<"organization">;
}

/** The part of a process's configuration that webhooks need. */
export interface WebhookDeps {
  config: Pick<Config, "ofWings" | "privateReceivers">;
}

/**
 * Maximum number of attempts to insert an endpoint. Below the maximum number of endpoints, an insert fails only if a
 * concurrent insert took the same `place`. That can happen at most once per place, unless endpoints are deleted
 * meanwhile.
 */
const ATTEMPTS_MAX = ENDPOINTS_MAX + 1;

/**
 * The root secret, from which the secrets of all endpoints are derived.
 * @throws AppError `webhooks_off` when it is not configured.
 */
export function requireWebhookSecret({ config }: WebhookDeps): string {
  const { secret } = webhookVariables.of(config);
  if (secret === null) throw new AppError(WEBHOOK_ERRORS.webhooks_off);
  return secret;
}

/**
 * Creates an endpoint. Only this response shows its secret.
 * @throws AppError `webhooks_off`, `invalid_request` for its URL, `webhook_limit`.
 */
export async function createWebhook(
  ctx: WebhookDeps,
  db: Queryable,
  organizationId: string,
  request: NewWebhook,
  id = newId("whk"),
): Promise<NewWebhookView> {
  const rootSecret = requireWebhookSecret(ctx);
  assertWebhookUrl(ctx, request.url);
  const row = { ...request, id, organizationId, places: ENDPOINTS_MAX };
  for (let attempt = 1; !(await insertWebhookEndpoint(db, row)); attempt++) {
    const existing = await selectWebhookEndpoints(db, organizationId);
    if (existing.length >= ENDPOINTS_MAX)
      throw new AppError(WEBHOOK_ERRORS.webhook_limit, (t) => t("inDetail.webhooksFull", { max: ENDPOINTS_MAX }));
    if (attempt === ATTEMPTS_MAX) throw new AppError("overloaded");
  }
  const endpoint = await selectWebhook(db, id, organizationId);
  return { ...viewWebhook(endpoint), secret: deriveWebhookSecret(rootSecret, id, 1) };
}

/**
 * Gives an endpoint its next secret, which only this response shows. The replaced secret also signs, for the next
 * {@link PREVIOUS_SECRET_HOURS} hours.
 * @throws AppError `webhooks_off`, `webhook_not_found`, `webhook_limit` when {@link PREVIOUS_SECRETS_MAX} earlier
 * secrets still sign.
 */
export async function rotateWebhook(
  ctx: WebhookDeps,
  db: Queryable,
  organizationId: string,
  id: string,
): Promise<RotatedWebhook> {
  const rootSecret = requireWebhookSecret(ctx);
  await selectWebhook(db, id, organizationId);
  const rotated = await rotateWebhookSecret(db, {
    id,
    organizationId,
    hours: PREVIOUS_SECRET_HOURS,
    secretsMax: PREVIOUS_SECRETS_MAX,
  });
  if (rotated === null)
    throw new AppError(WEBHOOK_ERRORS.webhook_limit, (t) =>
      t("inDetail.earlierSecretsFull", { max: PREVIOUS_SECRETS_MAX }),
    );
  const { secretVersion, previousSecretUntil } = rotated;
  return {
    id,
    secret: deriveWebhookSecret(rootSecret, id, secretVersion),
    previousSecretUntil: previousSecretUntil.toISOString(),
  };
}

/**
 * Sends one signed test event to an endpoint and returns the result. Also works for an endpoint that was disabled by
 * its partner or because of failures. A test is never retried and changes nothing.
 * @param onConnection runs the reads. Sending the test uses no database connection.
 * @throws AppError `webhooks_off`, `webhook_not_found`, `webhook_disabled` when an operator has disabled it.
 */
export async function testWebhook(
  ctx: WebhookDeps & { webhookSender: WebhookSender },
  onConnection: <T>(read: (db: Queryable) => Promise<T>) => Promise<T>,
  organizationId: string,
  id: string,
): Promise<TestedWebhook> {
  const rootSecret = requireWebhookSecret(ctx);
  const { endpoint, organization } = await onConnection(async (db) => {
    const endpoint = await selectWebhook(db, id, organizationId);
    return { endpoint, organization: await findOrganization(db, endpoint.organizationId) };
  });
  if (endpoint.disabledReason === "operator") throw new AppError(WEBHOOK_ERRORS.webhook_disabled);
  const { url, readAt } = endpoint;
  const event: WebhookBody = {
    type: WEBHOOK_TEST_TYPE,
    timestamp: readAt.toISOString(),
    data: { webhookId: id, ...markSandbox(organization?.sandbox === true) },
  };
  const body = JSON.stringify(event);
  const headers = webhookHeaders({
    id: newId("tst"),
    timestampSeconds: Math.floor(readAt.getTime() / 1_000),
    body,
    keys: openSigningKeys(rootSecret, endpoint),
  });
  const startedAt = performance.now();
  const { status, failure } = (await sendWebhook(ctx, { url, headers, body })) ?? { status: null, failure: "timeout" };
  return { delivered: failure === null, status, failure, durationMs: Math.round(performance.now() - startedAt) };
}

/** Reads the row of an organization's endpoint. @throws AppError `webhook_not_found`. */
export async function selectWebhook(db: Queryable, id: string, organizationId: string): Promise<WebhookRow> {
  const row = (await selectWebhookEndpoints(db, organizationId)).find((endpoint) => endpoint.id === id);
  if (row === undefined) throw new AppError(WEBHOOK_ERRORS.webhook_not_found);
  return row;
}

/** An endpoint in the form in which partners and operators see it. */
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

/** @throws AppError `invalid_request` if requests may not be sent to the URL. */
export function assertWebhookUrl({ config }: WebhookDeps, url: string): void {
  const problem = findUrlProblem(url, config.privateReceivers);
  if (problem !== null) throw invalidField("url", problem);
}
