import type pg from "pg";
import { AppError } from "../../contract/errors.ts";
import type { DeliveriesResponse, DeliveryState } from "../../contract/webhook-deliveries.ts";
import { findWebhookEndpoint, type WebhookRow } from "../../db/webhook-endpoints.ts";
import { listDeliveries } from "./list-deliveries.ts";

/** Which deliveries of an endpoint a page shows. Without a state: of every state. Without a cursor: the newest. */
export interface WebhookPage {
  state: DeliveryState | undefined;
  cursor: string | undefined;
}

/** A webhook endpoint as operators see it. */
export interface WebhookSummary extends DeliveriesResponse {
  endpoint: WebhookRow;
  /** Unfinished deliveries, counted up to {@link PENDING_MAX}. */
  pending: number;
  /** Whether there are more of them. */
  morePending: boolean;
}

const PAGE_SIZE = 25;
/** Most unfinished deliveries that are counted. */
const PENDING_MAX = 1_000;

/**
 * Reads an endpoint of any organization, the number of its unfinished deliveries, and a page of its deliveries, newest first.
 * @throws AppError `webhook_not_found`, `invalid_request` for a malformed cursor.
 */
export async function readWebhook(ctx: { pool: pg.Pool }, id: string, page: WebhookPage): Promise<WebhookSummary> {
  const endpoint = await findWebhookEndpoint(ctx.pool, id, null);
  if (endpoint === null) throw new AppError("webhook_not_found");
  const shown = await listDeliveries(ctx, { endpointId: id, ...page, limit: PAGE_SIZE });
  const pending = await listDeliveries(ctx, { endpointId: id, state: "Pending", limit: PENDING_MAX });
  return { endpoint, pending: pending.deliveries.length, morePending: pending.nextCursor !== null, ...shown };
}
