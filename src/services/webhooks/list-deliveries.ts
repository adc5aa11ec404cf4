import type pg from "pg";
import { AppError } from "../../contract/errors.ts";
import { DELIVERY_STATES, type DeliveriesResponse, type DeliveryState } from "../../contract/webhook-deliveries.ts";
import { type DeliveryPosition, type ListedDelivery, selectDeliveries } from "../../db/webhook-deliveries.ts";

interface ListInput {
  endpointId: string;
  /** The previous page's `nextCursor`. */
  cursor?: string | undefined;
  limit: number;
  state?: DeliveryState | undefined;
}

/**
 * A page of an endpoint's deliveries, newest first. The caller has checked whose endpoint it is.
 * @throws AppError `invalid_request` for a malformed cursor.
 */
export async function listDeliveries(
  { pool }: { pool: pg.Pool },
  { endpointId, cursor, limit, state }: ListInput,
): Promise<DeliveriesResponse> {
  const after = cursor === undefined ? NEWEST : parseCursor(cursor);
  const states = state === undefined ? DELIVERY_STATES : [state];
  const found = await selectDeliveries(pool, endpointId, states, after, limit + 1);
  const page = found.slice(0, limit);
  const last = page.at(-1);
  return {
    deliveries: page.map(viewDelivery),
    nextCursor: found.length > limit && last !== undefined ? formatCursor(last) : null,
  };
}

/** The position before the newest delivery. */
const NEWEST: DeliveryPosition = { createdAt: new Date(Date.UTC(9999, 0)), eventId: "" };

function formatCursor({ createdAt, eventId }: DeliveryPosition): string {
  return Buffer.from(`${createdAt.getTime()} ${eventId}`).toString("base64url");
}

function parseCursor(cursor: string): DeliveryPosition {
  const [, at, eventId = ""] = /^(\d{1,14}) ([\w-]{1,128})$/.exec(Buffer.from(cursor, "base64url").toString()) ?? [];
  if (at === undefined) throw new AppError("invalid_request", "cursor is not a cursor of this list.");
  return { createdAt: new Date(Number(at)), eventId };
}

function viewDelivery(delivery: ListedDelivery): DeliveriesResponse["deliveries"][number] {
  const { nextAttemptAt, createdAt, finishedAt, ...fields } = delivery;
  return {
    ...fields,
    nextAttemptAt: nextAttemptAt?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
    finishedAt: finishedAt?.toISOString() ?? null,
  };
}
