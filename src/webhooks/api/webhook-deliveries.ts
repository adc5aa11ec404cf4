import { z } from "zod";
import { EXAMPLE, examples } from "../../platform/api/example.ts";
import {
  count,
  flag,
  named,
  queryCursor,
  queryInteger,
  queryTime,
  sampleOf,
  sandbox,
  text,
  timestamp,
  voucherId,
} from "../../platform/api/fields.ts";
import { always, problem, wholeProblem } from "../../platform/api/problems.ts";
import { knownEventType, sequence } from "./webhooks.ts";

/**
 * States of a delivery. Failed: the service stopped retrying, or the endpoint was disabled. Erased: the event's payload
 * was erased before the delivery succeeded or failed.
 */
export const DELIVERY_STATES = ["Pending", "Delivered", "Failed", "Erased"] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** Why an attempt failed. The texts are fixed, so that no text from the endpoint is stored or shown. */
const DELIVERY_FAILURES = [
  "timeout",
  "refused_address",
  "unknown_host",
  "connection",
  "tls",
  "redirect",
  "status",
  "invalid_response",
] as const;
export type DeliveryFailure = (typeof DELIVERY_FAILURES)[number];

/** How long deliveries are kept. Days. */
export const DELIVERIES_KEPT_DAYS = 30;
/** Maximum number of deliveries that one call replays. */
export const REPLAY_MAX = 10_000;
/** Maximum number of event ids in one call. It keeps the request below the size limit of bodies. */
const REPLAY_IDS_MAX = 200;
const DELIVERIES_LIMIT_MAX = 1_000;
const EVENT_ID_MAX = 128;

const lastStatus = z
  .int()
  .nullable()
  .meta({ description: "The HTTP status of the last attempt; null when it got no answer.", examples: [204] });
const lastFailure = z
  .enum(DELIVERY_FAILURES)
  .nullable()
  .meta({ description: "Why the last attempt failed; null when it did not." });

export const testedWebhook = named("WebhookTestResult", {
  delivered: flag("Whether it answered with a status from 200 to 299."),
  status: lastStatus,
  failure: lastFailure,
  durationMs: count(0, "How long it took. Milliseconds.", 87),
  sandbox,
});
export type TestedWebhook = z.output<typeof testedWebhook>;

examples.add(testedWebhook, {
  delivered: { summary: "It works", value: { delivered: true, status: 204, failure: null, durationMs: 87 } },
  refused: { summary: "It answered 500", value: { delivered: false, status: 500, failure: "status", durationMs: 31 } },
  timeout: {
    summary: "It did not answer",
    value: { delivered: false, status: null, failure: "timeout", durationMs: 15_000 },
  },
});

const eventId = text("The `webhook-id` header: the same in every attempt.", `${EXAMPLE.voucherId}-2`);

const webhookDelivery = named("WebhookDelivery", {
  eventId,
  eventType: knownEventType,
  voucherId,
  sequence: sequence.nullable().meta({ description: "Null for `reservation.expired`." }),
  state: z.enum(DELIVERY_STATES).meta({
    description:
      "Delivered: it answered with a status from 200 to 299. Failed: no attempt follows, unless it is replayed. " +
      "Erased: the event's payload was erased, so it is not sent. Later releases may add states.",
    "x-open": true,
  }),
  attempts: count(0, "Number of attempts.", 1),
  nextAttemptAt: timestamp(
    "When the next attempt is due; null when none follows, or while an earlier event of the voucher is not finished.",
    EXAMPLE.redeemedAt,
  ).nullable(),
  lastStatus,
  lastFailure,
  createdAt: timestamp("When the event was queued.", EXAMPLE.redeemedAt),
  finishedAt: timestamp("When it was delivered or given up; null before.", EXAMPLE.redeemedAt).nullable(),
});
export type WebhookDeliveryView = z.output<typeof webhookDelivery>;

export const deliveriesQuery = z.object({
  state: z
    .enum(DELIVERY_STATES, problem("notOneOf", { values: DELIVERY_STATES.join(", ") }))
    .optional()
    .meta({ description: "Only deliveries in this state." }),
  cursor: queryCursor("The previous page's `nextCursor`; omit it for the first page."),
  limit: queryInteger(1, DELIVERIES_LIMIT_MAX, 100, "Maximum number of deliveries on the page."),
});
export type DeliveriesQuery = z.output<typeof deliveriesQuery>;

export const deliveriesResponse = named("WebhookDeliveries", {
  deliveries: z.array(webhookDelivery).meta({ description: `Newest first, of the last ${DELIVERIES_KEPT_DAYS} days.` }),
  nextCursor: text("Send it as `cursor` for the next page; null on the last one.").nullable(),
  sandbox,
});
export type DeliveriesResponse = z.output<typeof deliveriesResponse>;

examples.add(deliveriesResponse, {
  last: {
    summary: "The last page",
    value: {
      deliveries: [
        sampleOf(webhookDelivery, {
          eventType: "voucher.instance.redeemed",
          state: "Delivered",
          sequence: 2,
          nextAttemptAt: null,
          lastFailure: null,
        }),
      ],
      nextCursor: null,
    },
  },
});

export const replayRequest = z
  .object({
    from: queryTime("Replays events that were queued at or after this time.", "2026-11-21T00:00:00+01:00"),
    to: queryTime("Replays events that were queued before this time.", "2026-11-22T00:00:00+01:00"),
    eventIds: z
      .array(z.string({ error: problem("noEventIds") }).max(EVENT_ID_MAX, problem("noEventId")), {
        error: problem("noEventIds"),
      })
      .min(1, problem("empty"))
      .max(REPLAY_IDS_MAX, problem("tooMany", { max: REPLAY_IDS_MAX }))
      .optional()
      .meta({ description: "Replays these events.", examples: [[`${EXAMPLE.voucherId}-2`]] }),
  })
  .refine(
    ({ from, to, eventIds }) => (eventIds === undefined ? from !== undefined && to !== undefined : !from && !to),
    { error: wholeProblem("idsOrTimes"), when: always },
  )
  .refine(({ from, to }) => from === undefined || to === undefined || from < to, wholeProblem("fromBeforeTo"))
  .meta({ id: "ReplayWebhookRequest" });
export type ReplayRequest = z.output<typeof replayRequest>;

examples.add(replayRequest, {
  time: {
    summary: "By time",
    value: { from: "2026-11-21T00:00:00+01:00", to: "2026-11-22T00:00:00+01:00" },
  },
  ids: { summary: "By ids", value: { eventIds: [`${EXAMPLE.voucherId}-2`] } },
});

export const replayResponse = named("WebhookReplay", {
  replayed: count(0, `Deliveries that are sent again: at most ${REPLAY_MAX}, oldest first.`, 12),
  sandbox,
});
export type ReplayResponse = z.output<typeof replayResponse>;

examples.add(replayResponse, {
  replayed: { summary: "Twelve are sent again", value: { replayed: 12 } },
});
