import { arrayOf, boolean, integer, orNull, type Row, text, textOf, timestamptz } from "../../platform/db/columns.ts";
import type { Queryable } from "../../platform/db/pool.ts";
import { Statements } from "../../platform/db/statements.ts";
import type { WebhookChange, WebhookDisabledReason, WebhookEventType } from "../api/webhooks.ts";

/** An endpoint that is not deleted. */
const ENDPOINT = {
  id: text,
  organizationId: text,
  url: text,
  description: text,
  /** An empty list means all types. */
  eventTypes: arrayOf(textOf<WebhookEventType>()),
  enabled: boolean,
  /** Null while the endpoint is enabled. */
  disabledReason: orNull(textOf<WebhookDisabledReason>()),
  disabledAt: orNull(timestamptz),
  /** The time of the first failure since the last success. */
  failingSince: orNull(timestamptz),
  /** The time until which the replaced secret signs requests too. Null if it no longer signs. */
  previousSecretUntil: orNull(timestamptz),
  /** The versions of the secret that sign requests now, latest first. */
  signingVersions: arrayOf(integer),
  createdAt: timestamptz,
  /** The time of the read, on the database's clock. */
  readAt: timestamptz,
};
export type WebhookRow = Row<typeof ENDPOINT>;

const LISTED = {
  id: text,
  url: text,
  disabledReason: orNull(textOf<WebhookDisabledReason>()),
  failingSince: orNull(timestamptz),
  organizationId: text,
  organization: text,
};

/** Who disables or enables an endpoint. */
export type WebhookActor = Extract<WebhookDisabledReason, "partner" | "operator">;

export const sql = new Statements(new URL("./webhook-endpoints.sql", import.meta.url));

export const selectFailingEndpoints = sql.rows(
  "select_failing_endpoints",
  { id: text, url: text, organization: text, since: orNull(timestamptz), enabled: boolean },
  { failures: integer, limit: integer },
);

export const listWebhookEndpoints = sql.rows("list_webhook_endpoints", LISTED, { after: text, limit: integer });
export const selectWebhookEndpoints = sql.rows("select_webhook_endpoints", ENDPOINT, { organizationId: text });
export const findOrganizationOfWebhook = sql.value(
  "find_organization_of_webhook",
  { organizationId: text },
  { id: text },
);
export const disableWebhookEndpoint = sql.execute("disable_webhook_endpoint", {
  id: text,
  disabledReason: textOf<WebhookActor>(),
});
/** Rotates the secret. Returns null if there is no such endpoint, or if too many of its earlier secrets still sign. */
export const rotateWebhookSecret = sql.row(
  "rotate_webhook_secret",
  {
    id: text,
    secretVersion: integer,
    previousSecretUntil: timestamptz,
  },
  { id: text, organizationId: text, hours: integer, secretsMax: integer },
);
export const deleteWebhookEndpoint = sql.executeOne("delete_webhook_endpoint", { id: text, organizationId: text });
/** Inserts an endpoint into a free place. Returns false if none is free or another transaction took it first. */
export const insertWebhookEndpoint = sql.executeOne("insert_webhook_endpoint", {
  id: text,
  organizationId: text,
  url: text,
  description: text,
  eventTypes: arrayOf(text),
  enabled: boolean,
  places: integer,
});
const changeRow = sql.executeOne("change_webhook_endpoint", {
  id: text,
  organizationId: text,
  url: orNull(text),
  description: orNull(text),
  eventTypes: orNull(arrayOf(text)),
});
const enableRow = sql.execute("enable_webhook_endpoint", { id: text, byOperator: boolean });

/** Changes an endpoint's URL, description or event types. Returns whether the endpoint exists. */
export function changeWebhookEndpoint(
  db: Queryable,
  id: string,
  organizationId: string,
  { url, description, eventTypes }: WebhookChange,
): Promise<boolean> {
  return changeRow(db, {
    id,
    organizationId,
    url: url ?? null,
    description: description ?? null,
    eventTypes: eventTypes ?? null,
  });
}

/** Enables a disabled endpoint. A partner cannot enable an endpoint that an operator disabled. */
export async function enableWebhookEndpoint(db: Queryable, id: string, by: WebhookActor): Promise<void> {
  await enableRow(db, { id, byOperator: by === "operator" });
}
