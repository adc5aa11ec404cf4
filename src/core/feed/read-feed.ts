import type pg from "pg";
import { invalidField } from "../../platform/api/errors.ts";
import { pickFields } from "../../platform/api/fields.ts";
import type { Bulkhead, Requester } from "../callers/bulkhead.ts";
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
  findPageStart,
  findScannedPlace,
  selectFeedEvents,
} from "./db/feed.ts";
import type { EventFeed } from "./event-feed.ts";

/** Maximum number of events, of all organizations, that one statement reads: 30 ms. */
const SCANNED_MAX = 10_000;
/**
 * Maximum number of statements that read {@link SCANNED_MAX} events in one call. A caller with few events among many
 * gets an incomplete page and continues with the next call.
 */
const SCANS_MAX = 10;

/** Events after which the voucher's code is useless. Payloads of other events contain a code that may be redeemed. */
const CODE_ENDS: readonly EventType[] = ["voucher.instance.redeemed", "voucher.instance.voided"];

/** Number of hex digits of an event's hash in a cursor. They show if another event has its position after a restore. */
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
  /** The last event that was read, which may belong to any organization. Null before the first event. */
  place: FeedPlace | null;
  end: FeedEnd;
  /** Whether the page reaches the end of the feed. */
  isLast: boolean;
}

/**
 * Reads the organization's events after a cursor, in the final order, and waits until the standbys have them. If there
 * are none, waits for one, for as long as the caller wants. Works without Redis.
 * @throws AppError `invalid_request` for a cursor of another organization, or for a cursor whose event the database has
 * lost; `unavailable`, `overloaded`.
 */
export async function readFeed(ctx: Deps, caller: Caller, query: FeedQuery): Promise<FeedResponse> {
  const waitsUntil = performance.now() + query.wait * 1_000;
  const { organizationId } = caller;
  const { after, limit, types = [] } = query;
  // The requester has no signal, because other callers share the read.
  const requester = { organizationId };
  for (let from: string | number | undefined = after; ; ) {
    const start: string | number | undefined = from;
    const page: Page = await ctx.eventFeed.share(JSON.stringify([organizationId, start, limit, types]), () =>
      readConfirmed(ctx, () => readPage(ctx, requester, start, { limit, types })),
    );
    const { events, end } = page;
    const waitMs = waitsUntil - performance.now();
    const isOver = events.length > 0 || !page.isLast || waitMs <= 0;
    from = isOver ? undefined : ((await ctx.eventFeed.waitForEvents(caller, end.lastSlot, waitMs)) ?? undefined);
    if (from !== undefined) continue;
    return {
      events: events.map((event) => viewFeedEvent(event, caller, writeCursor(ctx, caller, event))),
      nextCursor: writeCursor(ctx, caller, page.place),
      completeUntil: end.completeUntil.toISOString(),
    };
  }
}

/**
 * Reads the organization's last events, of all types or of some, up to a cursor or the end of the feed, and waits until
 * the standbys have them. `start` is the cursor before the first of these events, or null if the feed begins with them.
 * Works without Redis.
 * @throws AppError as {@link readFeed}.
 */
export async function readLastEvents(
  ctx: Deps,
  caller: Caller,
  until: string | undefined,
  { limit, types = [] }: Pick<FeedQuery, "limit" | "types">,
): Promise<{ events: FeedEventView[]; start: string | null }> {
  const { pool, partnerCalls } = ctx;
  const { organizationId } = caller;
  return readConfirmed(ctx, async () => {
    const end = await ctx.eventFeed.readEnd(caller);
    const lastSlot = await findStart(ctx, caller, until ?? NOW, end.lastSlot);
    const scanned = SCANNED_MAX * SCANS_MAX;
    const page = { organizationId, lastSlot, eventTypes: [...types], scanned, limit };
    const afterSlot = await partnerCalls(caller, () => findPageStart(pool, page));
    const found = await partnerCalls(caller, () => selectFeedEvents(pool, { ...page, afterSlot }));
    const place = await partnerCalls(caller, () => findFeedPlace(pool, afterSlot));
    return {
      events: found.map((event) => viewFeedEvent(event, caller, writeCursor(ctx, caller, event))),
      start: place && writeCursor(ctx, caller, place),
    };
  });
}

async function readPage(
  ctx: Deps,
  requester: Requester<"organization">,
  start: string | number | undefined,
  { limit, types }: { limit: number; types: readonly string[] },
): Promise<Page> {
  const { pool, partnerCalls } = ctx;
  const { organizationId } = requester;
  const end = await ctx.eventFeed.readEnd(requester);
  const { lastSlot } = end;
  let afterSlot = typeof start === "number" ? start : await findStart(ctx, requester, start, lastSlot);
  for (let scans = 1; ; scans++) {
    const range = { afterSlot, lastSlot, scanned: SCANNED_MAX };
    const found = await partnerCalls(requester, () =>
      selectFeedEvents(pool, { ...range, organizationId, eventTypes: [...types], limit }),
    );
    if (found.length === limit) return { events: found, place: found.at(-1) ?? null, end, isLast: false };
    const scanned = await partnerCalls(requester, () => findScannedPlace(pool, range));
    if (scanned === null) {
      const place = await partnerCalls(requester, () => findFeedPlace(pool, lastSlot));
      return { events: found, place, end, isLast: true };
    }
    if (found.length > 0 || scans === SCANS_MAX) return { events: found, place: scanned, end, isLast: false };
    afterSlot = scanned.slot;
  }
}

/** The position in the feed (slot) after which a caller reads. 0 means the beginning. */
async function findStart(
  { pool, partnerCalls, tokenSecrets }: Deps,
  requester: Requester<"organization">,
  after: string | undefined,
  lastSlot: number,
): Promise<number> {
  if (after === undefined) return 0;
  if (after === NOW) return lastSlot;
  const given = verifyCursor(tokenSecrets, "events", requester.organizationId, after);
  if (given === null) throw invalidField("after", "noCursor");
  const [slot, digits] = given;
  if (slot === 0) return 0;
  const place = await partnerCalls(requester, () => findFeedPlace(pool, slot));
  if (place?.slot !== slot || digitsOf(place) !== digits) throw invalidField("after", "lostCursor");
  return slot;
}

function writeCursor({ tokenSecrets }: Deps, { organizationId }: Caller, place: FeedPlace | null): string {
  return signCursor(tokenSecrets, "events", organizationId, [place?.slot ?? 0, digitsOf(place)]);
}

function digitsOf(place: FeedPlace | null): string {
  return place === null ? "" : place.recordHash.slice(0, HASH_DIGITS);
}

/** Hides the payload from keys without the scope that lists codes, because payloads contain codes to redeem. */
function viewFeedEvent(event: FeedEvent, { issues }: Caller, cursor: string): FeedEventView {
  const view = viewEvent(event);
  const payload = issues || CODE_ENDS.includes(view.eventType) ? view.payload : null;
  return pickFields(feedEvent, { ...view, payload, entityId: event.voucherId, cursor });
}
