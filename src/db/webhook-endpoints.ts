import type { NewWebhook, WebhookChange, WebhookDisabledReason, WebhookEventType } from "../contract/webhooks.ts";
import { arrayOf, boolean, integer, orNull, type Row, text, textOf, timestamptz } from "./columns.ts";
import type { Queryable } from "./pool.ts";
import { execute, loadStatements, readRow, readRows } from "./statements.ts";

const ENDPOINT = {
  id: text,
  organizationId: text,
  url: text,
  description: text,
  /** Empty: all types. */
  eventTypes: arrayOf(textOf<WebhookEventType>()),
  enabled: boolean,
  /** Null while it is enabled. */
  disabledReason: orNull(textOf<WebhookDisabledReason>()),
  disabledAt: orNull(timestamptz),
  /** The first failure since the last success. */
  failingSince: orNull(timestamptz),
  /** The previous secret also signs until then; null: it does not. */
  previousSecretUntil: orNull(timestamptz),
  secretVersion: integer,
  createdAt: timestamptz,
  /** The database's clock. */
  readAt: timestamptz,
};

const ROTATED = { id: text, secretVersion: integer, previousSecretUntil: timestamptz };

export const sql = loadStatements(new URL("./webhook-endpoints.sql", import.meta.url), {
  insert_webhook_endpoint: { id: text },
  select_webhook_endpoints: ENDPOINT,
  find_webhook_endpoint: ENDPOINT,
  change_webhook_endpoint: {},
  enable_webhook_endpoint: {},
  disable_webhook_endpoint: {},
  rotate_webhook_secret: ROTATED,
  delete_webhook_endpoint: {},
});

/** An endpoint that is not deleted. */
export type WebhookRow = Row<typeof ENDPOINT>;

/** Who disables or enables an endpoint. */
export type WebhookActor = Extract<WebhookDisabledReason, "partner" | "operator">;

/** Inserts an endpoint. False when no place is free, or another transaction took the chosen one. */
export async function insertWebhookEndpoint(
  db: Queryable,
  endpoint: NewWebhook & { id: string; organizationId: string },
  by: WebhookActor,
): Promise<boolean> {
  const { id, organizationId, url, description, eventTypes, enabled } = endpoint;
  return (
    (await readRow(db, sql.insert_webhook_endpoint, [
      ...[id, organizationId, url, description],
      ...[eventTypes, enabled, by],
    ])) !== null
  );
}

/** An organization's endpoints, oldest first. */
export function selectWebhookEndpoints(db: Queryable, organizationId: string): Promise<WebhookRow[]> {
  return readRows(db, sql.select_webhook_endpoints, [organizationId]);
}

/** An endpoint of an organization, or of any if it is null. Null when there is none. */
export function findWebhookEndpoint(
  db: Queryable,
  id: string,
  organizationId: string | null,
): Promise<WebhookRow | null> {
  return readRow(db, sql.find_webhook_endpoint, [id, organizationId]);
}

/** Changes an endpoint's URL, description or event types; returns whether it exists. */
export async function changeWebhookEndpoint(
  db: Queryable,
  id: string,
  organizationId: string,
  { url, description, eventTypes }: WebhookChange,
): Promise<boolean> {
  const values = [id, organizationId, url ?? null, description ?? null, eventTypes ?? null];
  return (await execute(db, sql.change_webhook_endpoint, values)) === 1;
}

/** Enables an endpoint, unless only an operator may. Does nothing when it is enabled. */
export async function enableWebhookEndpoint(db: Queryable, id: string, by: WebhookActor): Promise<void> {
  await execute(db, sql.enable_webhook_endpoint, [id, by === "operator"]);
}

/** Disables an endpoint. An operator's reason replaces another one; a partner's replaces none. */
export async function disableWebhookEndpoint(db: Queryable, id: string, by: WebhookActor): Promise<void> {
  await execute(db, sql.disable_webhook_endpoint, [id, by]);
}

/** Gives an endpoint its next secret; null when there is no such endpoint. */
export function rotateWebhookSecret(
  db: Queryable,
  id: string,
  organizationId: string | null,
  previousSignsHours: number,
): Promise<Row<typeof ROTATED> | null> {
  return readRow(db, sql.rotate_webhook_secret, [id, organizationId, previousSignsHours]);
}

/** Deletes an endpoint for every caller; returns whether it existed. */
export async function deleteWebhookEndpoint(db: Queryable, id: string, organizationId: string): Promise<boolean> {
  return (await execute(db, sql.delete_webhook_endpoint, [id, organizationId])) === 1;
}
