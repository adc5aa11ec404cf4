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
  /** Null while the endpoint is enabled. */
  disabledReason: orNull(textOf<WebhookDisabledReason>()),
  disabledAt: orNull(timestamptz),
  /** The first failure since the last success. */
  failingSince: orNull(timestamptz),
  /** Until this time the previous secret also signs. Null: it does not sign. */
  previousSecretUntil: orNull(timestamptz),
  /** The versions of the secret that sign now, the latest first. */
  signingVersions: arrayOf(integer),
  createdAt: timestamptz,
  /** When the row was read, by the database's clock. */
  readAt: timestamptz,
};

const LISTED = {
  id: text,
  url: text,
  disabledReason: orNull(textOf<WebhookDisabledReason>()),
  failingSince: orNull(timestamptz),
  organizationId: text,
  organization: text,
};
export type ListedEndpoint = Row<typeof LISTED>;

const ROTATED = { id: text, secretVersion: integer, previousSecretUntil: timestamptz };

export const sql = loadStatements(new URL("./webhook-endpoints.sql", import.meta.url), {
  insert_webhook_endpoint: {},
  select_webhook_endpoints: ENDPOINT,
  list_webhook_endpoints: LISTED,
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

/** Inserts an endpoint into a free place of its organization. Returns false if none is free, or if another transaction took the place first. */
export async function insertWebhookEndpoint(
  db: Queryable,
  endpoint: NewWebhook & { id: string; organizationId: string },
  by: WebhookActor,
): Promise<boolean> {
  const { id, organizationId, url, description, eventTypes, enabled } = endpoint;
  const values = [id, organizationId, url, description, eventTypes, enabled, by];
  return (await execute(db, sql.insert_webhook_endpoint, values)) === 1;
}

/** At most `limit` endpoints of all organizations that follow an id, in the order of ids. */
export function listWebhookEndpoints(db: Queryable, after: string, limit: number): Promise<ListedEndpoint[]> {
  return readRows(db, sql.list_webhook_endpoints, [after, limit]);
}

/** An organization's endpoints, oldest first. */
export function selectWebhookEndpoints(db: Queryable, organizationId: string): Promise<WebhookRow[]> {
  return readRows(db, sql.select_webhook_endpoints, [organizationId]);
}

/** An endpoint of the given organization, or of any organization if `organizationId` is null. Null when there is no such endpoint. */
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

/** Enables a disabled endpoint. A partner cannot enable one that an operator disabled. */
export async function enableWebhookEndpoint(db: Queryable, id: string, by: WebhookActor): Promise<void> {
  await execute(db, sql.enable_webhook_endpoint, [id, by === "operator"]);
}

/** Disables an endpoint. If it is disabled already, only the reason `operator` replaces another reason. */
export async function disableWebhookEndpoint(db: Queryable, id: string, by: WebhookActor): Promise<void> {
  await execute(db, sql.disable_webhook_endpoint, [id, by]);
}

/** Gives an endpoint its next secret; null when there is no such endpoint, or when too many of its secrets sign. */
export function rotateWebhookSecret(
  db: Queryable,
  id: string,
  organizationId: string | null,
  previousSignsHours: number,
): Promise<Row<typeof ROTATED> | null> {
  return readRow(db, sql.rotate_webhook_secret, [id, organizationId, previousSignsHours]);
}

/** Marks an endpoint as deleted, so that no caller finds it; the sweeper deletes the row. Returns whether the endpoint existed. */
export async function deleteWebhookEndpoint(db: Queryable, id: string, organizationId: string): Promise<boolean> {
  return (await execute(db, sql.delete_webhook_endpoint, [id, organizationId])) === 1;
}
