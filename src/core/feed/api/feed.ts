import { z } from "zod";
import { EXAMPLE, examples } from "../../../platform/api/example.ts";
import { named, queryCursor, queryInteger, sandbox, text, timestamp } from "../../../platform/api/fields.ts";
import { problem } from "../../../platform/api/problems.ts";
import { CHAIN_EXAMPLE, entityId, partnerEvent } from "../../chain/api/events.ts";
import { EVENT_TYPES, type EventType } from "../../chain/chain.ts";

/** Maximum number of events on one page. */
const EVENTS_LIMIT_MAX = 1_000;
/** Maximum wait for an event. Less than 30 seconds, because proxies wait at least that long for a response. Seconds. */
const WAIT_MAX_S = 20;

/** The value of `after` that stands for the current end of the feed. */
export const NOW = "now";

const noTypes = problem("notSomeOf", { values: EVENT_TYPES.join(", ") });

export const feedQuery = z.object({
  after: queryCursor(
    "The previous page's `nextCursor`, or `now` for the events from now on. Omit it to begin with the first event.",
  ),
  limit: queryInteger(1, EVENTS_LIMIT_MAX, EVENTS_LIMIT_MAX, "Maximum number of events on the page."),
  types: z
    .string({ error: problem("notOneValue") })
    .transform((types) => types.split(","))
    .refine((types): types is EventType[] => types.every((type) => EVENT_TYPES.includes(type as EventType)), noTypes)
    .optional()
    .meta({
      description: "Only events of these types, separated by commas. Omit it for all, also those of later releases.",
      examples: ["voucher.instance.redeemed,voucher.instance.voided"],
      override: { type: "string" },
    }),
  wait: queryInteger(
    0,
    WAIT_MAX_S,
    0,
    "How many seconds the answer may wait for an event if there is none yet. Your client's timeout must be longer.",
  ),
});

export type FeedQuery = z.output<typeof feedQuery>;

/** An event of the feed. */
export const feedEvent = partnerEvent
  .extend({
    entityId,
    cursor: text("Send it as `after` to get what follows this event.", EXAMPLE.eventsCursor),
    payload: text(
      "The exact text that was hashed, as in the voucher's history. It contains the voucher's code. So a key without " +
        "the scope `voucher.issue`, which lists codes, gets it only in events after which the code is of no use: " +
        "`voucher.instance.redeemed` and `voucher.instance.voided`. Null elsewhere, and after it was erased.",
    ).nullable(),
  })
  .meta({ id: "FeedEvent" });

export type FeedEventView = z.output<typeof feedEvent>;

export const feedResponse = named("EventsPage", {
  events: z.array(feedEvent).meta({
    description:
      "In one final order: no event is ever added before one that was listed. The events of a voucher are in the " +
      "order of `sequence`.",
  }),
  nextCursor: text(
    "Send it as `after` to get what follows, now or on another day. A page without events may have another cursor.",
    EXAMPLE.eventsCursor,
  ),
  completeUntil: timestamp(
    "All events with an earlier `occurredAt` are in the feed, on this page or on others, and none is ever added. " +
      "Usually two to four seconds ago.",
    EXAMPLE.completeUntil,
  ),
  sandbox,
});

export type FeedResponse = z.output<typeof feedResponse>;

const [, redeemed] = CHAIN_EXAMPLE.events;

examples.add(feedResponse, {
  page: {
    summary: "A redemption",
    value: {
      events:
        redeemed === undefined ? [] : [{ ...redeemed, entityId: EXAMPLE.voucherId, cursor: EXAMPLE.eventsCursor }],
      nextCursor: EXAMPLE.eventsCursor,
      completeUntil: EXAMPLE.completeUntil,
    },
  },
  empty: {
    summary: "Nothing new yet: continue with the new cursor",
    value: { events: [], nextCursor: EXAMPLE.eventsCursor, completeUntil: EXAMPLE.completeUntil },
  },
});
