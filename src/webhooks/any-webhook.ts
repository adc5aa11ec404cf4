import type pg from "pg";
import { AppError } from "../platform/api/errors.ts";
import type { Queryable } from "../platform/db/pool.ts";
import type { DeliveriesResponse } from "./api/webhook-deliveries.ts";
import { findOrganizationOfWebhook, type WebhookRow } from "./db/webhook-endpoints.ts";
import { WEBHOOK_ERRORS } from "./declared.ts";
import { listDeliveries, type WebhookPage } from "./deliveries.ts";
import { selectWebhook } from "./endpoints.ts";

/** Number of deliveries on one page of an endpoint, for operators. */
const PAGE_SIZE = 25;
/** Unfinished deliveries are counted up to this number. */
const PENDING_MAX = 1_000;
interface WebhookSummary extends DeliveriesResponse {
  endpoint: WebhookRow;
  /** The number of unfinished deliveries, up to {@link PENDING_MAX}. */
  pending: number;
  /** Whether there are more than {@link PENDING_MAX} unfinished deliveries. */
  morePending: boolean;
}

/** The organization of an endpoint. Only for operators, because only they may use an endpoint by its id alone. */
export async function selectOrganizationOfWebhook(db: Queryable, id: string): Promise<string> {
  // Postgres does not accept NUL in text, and no id contains it.
  const organizationId = id.includes("\0") ? null : await findOrganizationOfWebhook(db, id);
  if (organizationId === null)
    throw new AppError(WEBHOOK_ERRORS.webhook_not_found, `There is no webhook endpoint ${id}.`);
  return organizationId;
}

/** Reads the row of any organization's endpoint. Only for operators. @throws AppError `webhook_not_found`. */
export async function selectAnyWebhook(db: Queryable, id: string): Promise<WebhookRow> {
  return selectWebhook(db, id, await selectOrganizationOfWebhook(db, id));
}

/**
 * Reads an endpoint with its deliveries, for operators.
 * @throws AppError `webhook_not_found`, `invalid_request` for a malformed cursor.
 */
export async function readWebhookPage(ctx: { pool: pg.Pool }, id: string, page: WebhookPage): Promise<WebhookSummary> {
  const endpoint = await selectAnyWebhook(ctx.pool, id);
  const shown = await listDeliveries(ctx, id, { ...page, limit: PAGE_SIZE });
  const pending = await listDeliveries(ctx, id, { state: "Pending", limit: PENDING_MAX });
  return { endpoint, pending: pending.deliveries.length, morePending: pending.nextCursor !== null, ...shown };
}
