import type pg from "pg";
import { AppError, invalidField, missingFields } from "../platform/api/errors.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { inTransaction, waitForLocks } from "../platform/db/transaction.ts";
import {
  DELIVERY_STATES,
  type DeliveriesQuery,
  type DeliveriesResponse,
  type DeliveryState,
  REPLAY_MAX,
  type ReplayRequest,
  type ReplayResponse,
} from "./api/webhook-deliveries.ts";
import { type DeliveryPosition, lockTargets, replayFinished, selectDeliveries } from "./db/webhook-deliveries.ts";
import { WEBHOOK_ERRORS } from "./declared.ts";
import { requireWebhookSecret, selectWebhook, type WebhookDeps } from "./endpoints.ts";
import type { WebhookRequests } from "./job.ts";

/** Maximum wait for the lock of the endpoint's row. A worker holds it while it records attempts. Milliseconds. */
const LOCK_WAIT_MS = 5_000;
/** The position before the newest delivery. */
const NEWEST: DeliveryPosition = { createdAt: new Date(Date.UTC(9999, 0)), eventId: "" };

/** A page of an endpoint's deliveries. By default, the newest ones, in every state. */
export interface WebhookPage {
  state?: DeliveryState | undefined;
  /** The previous page's `nextCursor`. */
  cursor?: string | undefined;
}

/**
 * A page of deliveries, newest first. The caller must have checked to which organization the endpoint belongs.
 * @throws AppError `invalid_request` for a malformed cursor.
 */
export async function listDeliveries(
  { pool }: { pool: pg.Pool },
  endpointId: string,
  { cursor, limit, state }: WebhookPage & { limit: number },
): Promise<DeliveriesResponse> {
  const after = cursor === undefined ? NEWEST : parseCursor(cursor);
  const states = state === undefined ? DELIVERY_STATES : [state];
  const found = await selectDeliveries(pool, endpointId, states, after, limit + 1);
  const page = found.slice(0, limit);
  const last = page.at(-1);
  return {
    deliveries: page.map(({ nextAttemptAt, createdAt, finishedAt, ...fields }) => ({
      ...fields,
      nextAttemptAt: nextAttemptAt?.toISOString() ?? null,
      createdAt: createdAt.toISOString(),
      finishedAt: finishedAt?.toISOString() ?? null,
    })),
    nextCursor: found.length > limit && last !== undefined ? formatCursor(last) : null,
  };
}

/**
 * A page of deliveries of an organization's own endpoint.
 * @throws AppError `webhooks_off`, `webhook_not_found`, `invalid_request` for a malformed cursor.
 */
export async function readDeliveries(
  ctx: WebhookDeps & { pool: pg.Pool },
  organizationId: string,
  id: string,
  query: DeliveriesQuery,
): Promise<DeliveriesResponse> {
  requireWebhookSecret(ctx);
  await selectWebhook(ctx.pool, id, organizationId);
  return listDeliveries(ctx, id, query);
}

/**
 * Sends finished deliveries of a partner's endpoint again.
 * @throws AppError `webhooks_off`, `webhook_not_found`, `webhook_disabled`.
 */
export async function replayWebhook(
  ctx: WebhookDeps & { pool: pg.Pool; webhookRequests: WebhookRequests },
  organizationId: string,
  endpointId: string,
  request: ReplayRequest,
): Promise<ReplayResponse> {
  requireWebhookSecret(ctx);
  const response = await inTransaction(ctx.pool, async (tx) => {
    await waitForLocks(tx, LOCK_WAIT_MS);
    const { disabledReason } = await selectWebhook(tx, endpointId, organizationId);
    if (disabledReason === "operator") throw new AppError(WEBHOOK_ERRORS.webhook_disabled);
    return replayDeliveries(tx, endpointId, request);
  });
  await ctx.webhookRequests.tryAdd([endpointId]);
  return response;
}

/**
 * Makes finished deliveries of an endpoint Pending again: at most REPLAY_MAX, oldest first. They keep their ids and the
 * order of each voucher's events. The caller may request the job that sends them. Otherwise the sweeper does.
 * @throws AppError `webhook_disabled`.
 */
export async function replayDeliveries(
  tx: Transaction,
  endpointId: string,
  { from, to, eventIds }: ReplayRequest,
): Promise<ReplayResponse> {
  const [endpoint] = await lockTargets(tx, [endpointId]);
  if (endpoint?.enabled !== true)
    throw new AppError(WEBHOOK_ERRORS.webhook_disabled, (t) => t("inDetail.endpointDisabled"));
  const choice = eventIds !== undefined ? { eventIds } : from && to && { from, to };
  if (choice === undefined) throw missingFields({ from, to });
  return { replayed: await replayFinished(tx, endpointId, endpoint.now, choice, REPLAY_MAX) };
}

function formatCursor({ createdAt, eventId }: DeliveryPosition): string {
  return Buffer.from(`${createdAt.getTime()} ${eventId}`).toString("base64url");
}

function parseCursor(cursor: string): DeliveryPosition {
  const [, at, eventId = ""] = /^(\d{1,14}) ([\w-]{1,128})$/.exec(Buffer.from(cursor, "base64url").toString()) ?? [];
  if (at === undefined) throw invalidField("cursor", "noCursor");
  return { createdAt: new Date(Number(at)), eventId };
}
