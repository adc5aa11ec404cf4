import type pg from "pg";
import { AppError } from "../platform/api/errors.ts";
import type { Queryable } from "../platform/db/pool.ts";
import type { DeliveriesResponse } from "./api/webhook-deliveries.ts";
import { findOrganizationOfWebhook, type WebhookRow } from "./db/webhook-endpoints.ts";
import { listDeliveries, type WebhookPage } from "./deliveries.ts";
import { selectWebhook } from "./endpoints.ts";

/** Deliveries on an operator's page of an endpoint. */
const PAGE_SIZE = 25;
/** Most unfinished deliveries that are counted. */
const PENDING_MAX = 1_000;
/** A webhook endpoint as operators see it. */
interface WebhookSummary extends DeliveriesResponse {
  endpoint: WebhookRow;
  /** Unfinished deliveries, counted up to {@link PENDING_MAX}. */
  pending: number;
  /** Whether there are more of them. */
  morePending: boolean;
}

/**
 * The organization of an endpoint, for an operator, who names the endpoint by its id alone.
 * @throws AppError `webhook_not_found`.
 */
export async function selectOrganizationOfWebhook(db: Queryable, id: string): Promise<string> {
  // No id contains NUL, and Postgres does not accept NUL in text.
  const organizationId = id.includes("\0") ? null : await findOrganizationOfWebhook(db, id);
  if (organizationId === null) throw new AppError("webhook_not_found", `There is no webhook endpoint ${id}.`);
  return organizationId;
}

/** Reads the row of an endpoint of any organization, for an operator. @throws AppError `webhook_not_found`. */
export async function selectAnyWebhook(db: Queryable, id: string): Promise<WebhookRow> {
  return selectWebhook(db, id, await selectOrganizationOfWebhook(db, id));
}

/**
 * What operators see of any endpoint.
 * @throws AppError `webhook_not_found`, `invalid_request` for a malformed cursor.
 */
export async function readWebhookPage(ctx: { pool: pg.Pool }, id: string, page: WebhookPage): Promise<WebhookSummary> {
  const endpoint = await selectAnyWebhook(ctx.pool, id);
  const shown = await listDeliveries(ctx, id, { ...page, limit: PAGE_SIZE });
  const pending = await listDeliveries(ctx, id, { state: "Pending", limit: PENDING_MAX });
  return { endpoint, pending: pending.deliveries.length, morePending: pending.nextCursor !== null, ...shown };
}
