import type pg from "pg";
import { invalidField } from "../../platform/api/errors.ts";
import { pickFields } from "../../platform/api/fields.ts";
import type { Bulkhead } from "../callers/bulkhead.ts";
import type { EventType } from "../chain/chain.ts";
import { viewEvent } from "../chain/read-chain.ts";
import { type Confirming, readConfirmed } from "../commit/confirm-reads.ts";
import type { Caller } from "../keys/caller.ts";
import type { TokenSecret } from "../reserve/reservation-token.ts";
import { signCursor, verifyCursor } from "../reserve/signed-cursor.ts";
import { type FeedEventView, type FeedQuery, type FeedResponse, feedEvent, NOW } from "./api/feed.ts";
import {
  type FeedEnd,
  type FeedEvent,
  type FeedPlace,
  findFeedPlace,
  findScannedPlace,
  selectFeedEvents,
} from "./db/feed.ts";
import type { EventFeed } from "./event-feed.ts";

/** Events of all organizations that one statement reads at most: 30 ms. */
const SCANNED_MAX = 10_000;
/** Maximum number of such statements in a call: a caller with rare events continues with its next call. */
const SCANS_MAX = 10;

/** After these events, the voucher's code is of no use. Any other payload has a code that may still be redeemed. */
const CODE_ENDS: readonly EventType[] = ["voucher.instance.redeemed", "voucher.instance.voided"];

/** Hex digits of an event's hash in a cursor. They tell it from an event that took its slot after a restore. */
const HASH_DIGITS = 16;

interface Deps extends Confirming {
  pool: pg.Pool;
  partnerCalls: Bulkhead<"organization">;
  tokenSecrets: readonly TokenSecret[];
  eventFeed: EventFeed;
}

/** A page of the feed. */
interface Page {
  events: FeedEvent[];
  /** The last event that was read, of any organization. Null before the first one. */
  place: FeedPlace | null;
  end: FeedEnd;
  /** Whether the page reaches the end. */
  isLast: boolean;
}

/**
 * Reads the organization's events after a cursor, in the final order, and confirms them. If there are none, waits for
 * one as long as the caller wants. Works without Redis.
 * @throws AppError `invalid_request` for a cursor of another organization, or of an event that the database has lost;
 * `unavailable`, `overloaded`.
 */
export async function readFeed(ctx: Deps, caller: Caller, query: FeedQuery): Promise<FeedResponse> {
  const waitsUntil = performance.now() + query.wait * 1_000;
  let from = query.after;
  for (;;) {
    const after = from;
    const page = await readConfirmed(ctx, () => readPage(ctx, caller, after, query));
    const { events, place, end } = page;
    from = writeCursor(ctx, caller, place);
    const waitMs = waitsUntil - performance.now();
    const isOver = events.length > 0 || !page.isLast || waitMs <= 0;
    if (!isOver && (await ctx.eventFeed.waitForEvents(caller, end.lastSlot, waitMs))) continue;
    return {
      events: events.map((event) => viewFeedEvent(event, writeCursor(ctx, caller, event))),
      nextCursor: from,
      completeUntil: end.completeUntil.toISOString(),
    };
  }
}

async function readPage(ctx: Deps, caller: Caller, after: string | undefined, query: FeedQuery): Promise<Page> {
  const { pool, partnerCalls } = ctx;
  const { organizationId } = caller;
  const { limit } = query;
  const end = await ctx.eventFeed.readEnd(caller);
  const { lastSlot } = end;
  let place = await findStart(ctx, caller, after, lastSlot);
  for (let scans = 1; ; scans++) {
    const range = { afterSlot: place?.slot ?? 0, lastSlot, scanned: SCANNED_MAX };
    const found = await partnerCalls(caller, () =>
      selectFeedEvents(pool, { ...range, organizationId, eventTypes: query.types ?? [], limit }),
    );
    if (found.length === limit) return { events: found, place: found.at(-1) ?? null, end, isLast: false };
    const scanned = await partnerCalls(caller, () => findScannedPlace(pool, range));
    if (scanned === null) {
      const last = await partnerCalls(caller, () => findFeedPlace(pool, lastSlot));
      return { events: found, place: last ?? place, end, isLast: true };
    }
    place = scanned;
    if (found.length > 0 || scans === SCANS_MAX) return { events: found, place, end, isLast: false };
  }
}

/** The event after which a caller reads. Null for the beginning. */
async function findStart(
  { pool, partnerCalls, tokenSecrets }: Deps,
  caller: Caller,
  after: string | undefined,
  lastSlot: number,
): Promise<FeedPlace | null> {
  if (after === undefined) return null;
  const given = after === NOW ? null : verifyCursor(tokenSecrets, "events", caller.organizationId, after);
  if (after !== NOW && given === null) throw invalidField("after", "noCursor");
  const [slot, digits] = given ?? [lastSlot];
  if (slot === 0) return null;
  const place = await partnerCalls(caller, () => findFeedPlace(pool, slot));
  if (given !== null && (place?.slot !== slot || digitsOf(place) !== digits)) throw invalidField("after", "lostCursor");
  return place;
}

function writeCursor({ tokenSecrets }: Deps, { organizationId }: Caller, place: FeedPlace | null): string {
  return signCursor(tokenSecrets, "events", organizationId, [place?.slot ?? 0, digitsOf(place)]);
}

function digitsOf(place: FeedPlace | null): string {
  return place === null ? "" : place.recordHash.slice(0, HASH_DIGITS);
}

function viewFeedEvent(event: FeedEvent, cursor: string): FeedEventView {
  const view = viewEvent(event);
  const payload = CODE_ENDS.includes(view.eventType) ? view.payload : null;
  return pickFields(feedEvent, { ...view, payload, entityId: event.voucherId, cursor });
}
