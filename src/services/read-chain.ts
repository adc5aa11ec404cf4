import type { ApiContext } from "../context.ts";
import { selectCanonPreservedSince, selectEventsPage } from "../db/events.ts";
import { findChainHead } from "../db/vouchers.ts";
import { ANCHOR_NAMESPACE, ENTITY_TYPE, EVENT_CODES, type EventType, type StoredEvent } from "../domain/chain.ts";
import { AppError } from "../domain/errors.ts";
import type { Caller } from "./caller.ts";
import { resolveVoucher, voucherNotFound } from "./resolve-voucher.ts";

/** Most events on one page, and the page when none is asked for. */
export const EVENTS_LIMIT_MAX = 1_000;

export interface ChainPage {
  /** Events behind this sequence. */
  after: number;
  limit: number;
}

/** An event as anyone may see it: no payload, because payloads carry codes, and no actor. */
export interface PublicEventView {
  sequence: number;
  eventType: EventType;
  code: (typeof EVENT_CODES)[EventType];
  occurredAt: string;
  sealStatus: "Pending" | "Sealed";
  /** Null while the event is Pending, like `previousHash` and `payload`. */
  recordHash: string | null;
  previousHash: string | null;
}

/** An event as the voucher's own partner sees it (contract, "Sealed event chain"). */
export interface EventView extends PublicEventView {
  payload: string | null;
  actorConnectedId: string | null;
  actorIsEmployee: boolean | null;
}

export interface ChainView<Event> {
  entityType: typeof ENTITY_TYPE;
  entityId: string;
  anchorNamespace: typeof ANCHOR_NAMESPACE;
  events: Event[];
  canonPreservedSinceUtc: string;
  hasMore: boolean;
}

/**
 * A voucher's chain with the canonical payloads, for its own partner. Needs Postgres alone.
 * @throws AppError `voucher_not_found`, `too_many_misses`.
 */
export async function readPartnerChain(
  ctx: Pick<ApiContext, "pool" | "voucherReads" | "limits">,
  caller: Caller,
  codeOrTicket: string,
  page: ChainPage,
): Promise<ChainView<EventView>> {
  const { voucher } = await resolveVoucher(ctx, caller, codeOrTicket);
  if (voucher === null) throw voucherNotFound();
  return readChain(ctx, voucher.id, page, (event) => ({
    ...viewPublicly(event),
    payload: event.payload,
    actorConnectedId: event.actorConnectedId,
    actorIsEmployee: event.actorIsEmployee,
  }));
}

/**
 * A chain's hashes for anyone who knows the entity's id.
 * @throws AppError `entity_not_found` for an unknown id or type; `overloaded`.
 */
export async function readPublicChain(
  ctx: Pick<ApiContext, "pool" | "publicReads">,
  entityType: string,
  entityId: string,
  page: ChainPage,
): Promise<ChainView<PublicEventView>> {
  return ctx.publicReads(async () => {
    const known = entityType === ENTITY_TYPE && !entityId.includes("\0") && (await findChainHead(ctx.pool, entityId));
    if (!known) throw new AppError("entity_not_found", "There is no event chain with this type and identifier.");
    return readChain(ctx, entityId, page, viewPublicly);
  });
}

async function readChain<Event>(
  ctx: Pick<ApiContext, "pool">,
  voucherId: string,
  page: ChainPage,
  view: (event: StoredEvent) => Event,
): Promise<ChainView<Event>> {
  // One after the other: a read takes one connection.
  const events = await selectEventsPage(ctx.pool, voucherId, page.after, page.limit + 1);
  const preservedSince = await selectCanonPreservedSince(ctx.pool);
  return {
    entityType: ENTITY_TYPE,
    entityId: voucherId,
    anchorNamespace: ANCHOR_NAMESPACE,
    events: events.slice(0, page.limit).map(view),
    canonPreservedSinceUtc: preservedSince.toISOString(),
    hasMore: events.length > page.limit,
  };
}

function viewPublicly(event: StoredEvent): PublicEventView {
  const eventType = event.eventType as EventType;
  return {
    sequence: event.sequence,
    eventType,
    code: EVENT_CODES[eventType],
    occurredAt: event.occurredAt.toISOString(),
    sealStatus: event.sealStatus,
    recordHash: event.recordHash,
    previousHash: event.previousHash,
  };
}
