import { arrayOf, bigint, integer, type Row, text, timestamptz } from "../../../platform/db/columns.ts";
import { Statements } from "../../../platform/db/statements.ts";
import { SEEN_EVENT } from "../../chain/db/events.ts";

const FEED_END = { lastSlot: bigint, completeUntil: timestamptz };
/** The current end of the feed. No event will be added before it. */
export type FeedEnd = Row<typeof FEED_END>;

const FEED_PLACE = { slot: bigint, recordHash: text };
/** The event of the feed at which a caller continues. */
export type FeedPlace = Row<typeof FEED_PLACE>;

const FEED_EVENT = { ...SEEN_EVENT, recordHash: text, slot: bigint };
export type FeedEvent = Row<typeof FEED_EVENT>;

export const sql = new Statements(new URL("./feed.sql", import.meta.url));

export const moveFeed = sql.execute("move_feed", { latest: timestamptz });
export const findFeedEnd = sql.requiredRow("find_feed_end", FEED_END);
export const findFeedPlace = sql.row("find_feed_place", FEED_PLACE, { slot: bigint });
export const findScannedPlace = sql.row("find_scanned_place", FEED_PLACE, {
  afterSlot: bigint,
  lastSlot: bigint,
  scanned: integer,
});
export const findPageStart = sql.requiredValue(
  "find_page_start",
  { slot: bigint },
  { organizationId: text, lastSlot: bigint, eventTypes: arrayOf(text), scanned: integer, limit: integer },
);
export const selectFeedEvents = sql.rows("select_feed_events", FEED_EVENT, {
  organizationId: text,
  afterSlot: bigint,
  lastSlot: bigint,
  eventTypes: arrayOf(text),
  scanned: integer,
  limit: integer,
});
export const countNextEvents = sql.rows(
  "count_next_events",
  { organizationId: text, events: integer },
  { afterSlot: bigint, lastSlot: bigint, scanned: integer },
);
