import type pg from "pg";
import { AppError } from "../../platform/api/errors.ts";
import { markSandbox, pickFields } from "../../platform/api/fields.ts";
import type { Limits } from "../../platform/limits/open-limits.ts";
import type { Bulkhead, Requester } from "../callers/bulkhead.ts";
import { type Confirming, readConfirmed } from "../commit/confirm-reads.ts";
import type { Caller } from "../keys/caller.ts";
import { findVoucherSandbox } from "../voucher/db/vouchers.ts";
import { notFound, resolveVoucher, type VoucherReads } from "../voucher/resolve-voucher.ts";
import { ENTITY_TYPE } from "../voucher/voucher.ts";
import {
  type EventsQuery,
  type PartnerChain,
  type PartnerEvent,
  type PublicChain,
  type PublicEvent,
  partnerEvent,
  publicEvent,
} from "./api/events.ts";
import {
  ANCHOR_NAMESPACE,
  EVENT_CODES,
  type EventType,
  erasedSequencesOf,
  keepsPayload,
  type StoredEvent,
} from "./chain.ts";
import { selectCanonPreservedSince, selectEventsPage } from "./db/events.ts";

/** Returns a function that reads once, and remembers, the time since which this deployment keeps payloads. */
export function openPreservedSince(pool: pg.Pool): () => Promise<Date> {
  let known: Date | undefined;
  return async () => {
    known ??= await selectCanonPreservedSince(pool);
    return known;
  };
}

type SeenEvent = StoredEvent & { logIndex: number | null };

type Deps = Confirming & { pool: pg.Pool; preservedSince: () => Promise<Date> };

/** Reads a chain and its payloads for the voucher's partner, and waits for the standbys. Works without Redis. */
export async function readPartnerChain(
  ctx: Deps & { partnerCalls: Bulkhead<"organization">; voucherReads: VoucherReads; limits: Limits },
  caller: Caller,
  codeOrTicket: string,
  page: EventsQuery,
): Promise<PartnerChain> {
  const { voucher } = await resolveVoucher(ctx, caller, codeOrTicket);
  if (voucher === null) throw notFound(codeOrTicket);
  return readConfirmed(ctx, () => ctx.partnerCalls(caller, () => readChain(ctx, voucher.id, page, viewEvent)));
}

/** Reads a chain's hashes for anyone who knows the entity's id, and waits until the standbys have what was read. */
export async function readPublicChain(
  ctx: Deps & { publicReads: Bulkhead<"visitor"> },
  visitor: Requester<"visitor">,
  entityType: string,
  entityId: string,
  page: EventsQuery,
): Promise<PublicChain> {
  const read = async () => {
    const isPossible = entityType === ENTITY_TYPE && !entityId.includes("\0");
    const sandbox = isPossible ? await findVoucherSandbox(ctx.pool, entityId) : null;
    if (sandbox === null) throw new AppError("entity_not_found");
    const chain = await readChain(ctx, entityId, page, viewPublicEvent);
    return { ...chain, ...markSandbox(sandbox) };
  };
  return readConfirmed(ctx, () => ctx.publicReads(visitor, read));
}

async function readChain<Event>(
  ctx: Deps,
  voucherId: string,
  page: EventsQuery,
  view: (event: SeenEvent) => Event,
): Promise<Omit<PublicChain, "events"> & { events: Event[] }> {
  // Runs one query after the other, because a call may use only one connection at a time.
  const events = await selectEventsPage(ctx.pool, { voucherId, after: page.after, limit: page.limit + 1 });
  const preservedSince = await ctx.preservedSince();
  return {
    entityType: ENTITY_TYPE,
    entityId: voucherId,
    anchorNamespace: ANCHOR_NAMESPACE,
    events: events.slice(0, page.limit).map(view),
    canonPreservedSinceUtc: preservedSince.toISOString(),
    hasMore: events.length > page.limit,
  };
}

function viewPublicEvent(event: SeenEvent): PublicEvent {
  return pickFields(publicEvent, { ...viewEvent(event), payloadKept: keepsPayload(event) });
}

/** Shows an event as the voucher's own partner sees it. */
export function viewEvent(event: SeenEvent): PartnerEvent {
  const eventType = event.eventType as EventType;
  const erases = eventType === "voucher.instance.erased" && event.payload !== null;
  return pickFields(partnerEvent, {
    ...event,
    eventType,
    code: EVENT_CODES[eventType],
    occurredAt: event.occurredAt.toISOString(),
    erasedBy: event.erasedBy ?? undefined,
    erasedSequences: erases ? erasedSequencesOf(event) : undefined,
  });
}
