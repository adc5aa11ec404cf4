import { z } from "zod";
import { EXAMPLE, examples } from "./example.ts";
import {
  count,
  filledTextUpTo,
  queryCursor,
  queryInteger,
  queryTime,
  redeemCode,
  sandbox,
  sha256,
  textUpTo,
  timestamp,
  voucherId,
} from "./fields.ts";

/** The event types that an endpoint can subscribe to. Migration 00019 has the same list. */
export const WEBHOOK_EVENT_TYPES = [
  "voucher.instance.redeemed",
  "voucher.instance.voided",
  "voucher.instance.expired",
  "voucher.instance.claimed",
  "voucher.instance.bought",
  "reservation.expired",
] as const;
export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number];

/** The type of a test request. An endpoint need not subscribe to it. */
export const WEBHOOK_TEST_TYPE = "webhook.test";

/** Why an endpoint is disabled. */
const WEBHOOK_DISABLED_REASONS = ["partner", "operator", "gone", "failing"] as const;
export type WebhookDisabledReason = (typeof WEBHOOK_DISABLED_REASONS)[number];

/** States of a delivery. Failed: the service stopped retrying, or the endpoint was disabled. */
export const DELIVERY_STATES = ["Pending", "Delivered", "Failed"] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** Why an attempt failed. The words are fixed, so that no text from the endpoint is stored or shown. */
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
/** Maximum number of event ids in one call, so that the request stays below the size limit of bodies. */
const REPLAY_IDS_MAX = 200;
const WEBHOOK_URL_MAX = 2_048;
const DESCRIPTION_MAX = 200;
const DELIVERIES_LIMIT_MAX = 1_000;
const EVENT_ID_MAX = 128;

const sequence = count(1, "The event's position in the voucher's chain.", 2);
const recordHash = sha256("The event's `recordHash` in the voucher's chain.");
const occurredAt = timestamp("When it happened.", EXAMPLE.redeemedAt);

const sealedData = z.object({ voucherId, sequence, recordHash });

function eventOf<const Type extends string, Data extends z.ZodObject>(type: Type, id: string, data: Data) {
  return z.object({ type: z.literal(type), timestamp: occurredAt, data: data.extend({ sandbox }) }).meta({ id });
}

/** The body of a webhook request. It has no voucher code, no ticket and no token; fields are sent in this order. */
export const webhookEvent = z
  .discriminatedUnion("type", [
    eventOf(
      "voucher.instance.redeemed",
      "WebhookRedeemed",
      sealedData.extend({
        externalRef: z.string().meta({
          description: "The reference under which the voucher was redeemed.",
          examples: [EXAMPLE.externalRef],
        }),
        redeemCode,
      }),
    ),
    eventOf("voucher.instance.voided", "WebhookVoided", sealedData),
    eventOf("voucher.instance.expired", "WebhookExpired", sealedData),
    eventOf("voucher.instance.claimed", "WebhookClaimed", sealedData),
    eventOf("voucher.instance.bought", "WebhookBought", sealedData),
    eventOf(
      "reservation.expired",
      "WebhookReservationExpired",
      z.object({
        voucherId,
        startedAt: timestamp("When the reservation began.", EXAMPLE.reservedAt),
        expiresAt: timestamp("When it expired, as the answer to reserve said.", EXAMPLE.reservedUntil),
      }),
    ),
    eventOf(
      WEBHOOK_TEST_TYPE,
      "WebhookTest",
      z.object({
        webhookId: z.string().meta({ description: "The endpoint that was tested.", examples: [EXAMPLE.webhookId] }),
      }),
    ),
  ])
  .meta({ id: "WebhookEvent" });

export type WebhookEvent = z.output<typeof webhookEvent>;

const url = filledTextUpTo(
  WEBHOOK_URL_MAX,
  "Where requests are sent: https, port 443 or 8443, a public address, no user name, password or fragment.",
  EXAMPLE.webhookUrl,
);
const description = textUpTo(DESCRIPTION_MAX, "A name for your own use.", "orders of the web shop");
const eventTypes = z
  .array(z.enum(WEBHOOK_EVENT_TYPES, `must be a list of event types: ${WEBHOOK_EVENT_TYPES.join(", ")}`), {
    error: "must be a list of event types",
  })
  .max(WEBHOOK_EVENT_TYPES.length, "must name each event type at most once")
  .refine((types) => new Set(types).size === types.length, "must name each event type at most once")
  .meta({
    description: "The events that are sent. An empty list means all, also types that later versions add.",
    examples: [["voucher.instance.redeemed", "voucher.instance.voided"]],
  });
const enabled = z
  .boolean({ error: "must be true or false" })
  .meta({ description: "Whether events are sent. Events that happen while it is disabled are never sent." });

export const createWebhookRequest = z
  .object({
    url,
    description: description.default(""),
    eventTypes: eventTypes.default([]),
    enabled: enabled.default(true),
  })
  .meta({ id: "CreateWebhookRequest" });

export type NewWebhook = z.output<typeof createWebhookRequest>;

examples.add(createWebhookRequest, {
  all: { summary: "All events", value: { url: EXAMPLE.webhookUrl } },
  some: {
    summary: "Two types of events",
    value: {
      url: EXAMPLE.webhookUrl,
      description: "orders of the web shop",
      eventTypes: ["voucher.instance.redeemed", "voucher.instance.voided"],
    },
  },
});

export const changeWebhookRequest = z
  .object({
    url: url.optional(),
    description: description.optional(),
    eventTypes: eventTypes.optional(),
    enabled: enabled.optional(),
  })
  .meta({ id: "ChangeWebhookRequest" });

export type WebhookChange = z.output<typeof changeWebhookRequest>;

examples.add(changeWebhookRequest, {
  enable: { summary: "Enable it again", value: { enabled: true } },
});

export const webhookId = z.string().meta({ description: "The endpoint's id.", examples: [EXAMPLE.webhookId] });

export const webhookEndpoint = z
  .object({
    id: webhookId,
    url: z.string().meta({ format: "uri", description: "Where requests are sent.", examples: [EXAMPLE.webhookUrl] }),
    description: z.string().meta({ description: "A name for your own use.", examples: ["orders of the web shop"] }),
    eventTypes: z.array(z.enum(WEBHOOK_EVENT_TYPES)).meta({ description: "The events that are sent. Empty: all." }),
    enabled: z.boolean().meta({ description: "Whether events are sent." }),
    disabledReason: z.enum(WEBHOOK_DISABLED_REASONS).nullable().meta({
      description:
        "Why no events are sent: `partner` (a request disabled it), `operator` (only an operator can enable it again), `gone` (it answered 410) or `failing` (nothing but failures for five days). Null while it is enabled.",
    }),
    disabledAt: timestamp("When it was disabled; null while it is enabled.", EXAMPLE.redeemedAt).nullable(),
    failingSince: timestamp(
      "The first failure since it last succeeded, was enabled or got another `url`; null when there is none.",
      EXAMPLE.redeemedAt,
    ).nullable(),
    previousSecretUntil: timestamp(
      "Until then, requests are also signed with the secret from before the last rotation; null when there is none.",
      EXAMPLE.redeemedAt,
    ).nullable(),
    createdAt: timestamp("When it was created.", EXAMPLE.issuedAt),
    sandbox,
  })
  .meta({ id: "Webhook" });

export type WebhookView = z.output<typeof webhookEndpoint>;

const WEBHOOK: WebhookView = {
  id: EXAMPLE.webhookId,
  url: EXAMPLE.webhookUrl,
  description: "orders of the web shop",
  eventTypes: ["voucher.instance.redeemed", "voucher.instance.voided"],
  enabled: true,
  disabledReason: null,
  disabledAt: null,
  failingSince: null,
  previousSecretUntil: null,
  createdAt: EXAMPLE.issuedAt,
};

examples.add(webhookEndpoint, {
  enabled: { summary: "Enabled", value: WEBHOOK },
  gone: {
    summary: "Disabled after the answer 410",
    value: { ...WEBHOOK, enabled: false, disabledReason: "gone", disabledAt: EXAMPLE.redeemedAt },
  },
});

const secret = z.string().meta({
  description:
    "Verifies signatures. Shown only here: save it now. In the form of Standard Webhooks: `whsec_` and 32 bytes in base64.",
  examples: [EXAMPLE.webhookSecret],
});

export const newWebhook = webhookEndpoint.extend({ secret }).meta({ id: "NewWebhook" });
export type NewWebhookView = z.output<typeof newWebhook>;

examples.add(newWebhook, {
  created: { summary: "Created", value: { ...WEBHOOK, secret: EXAMPLE.webhookSecret } },
});

export const webhookList = z
  .object({ webhooks: z.array(webhookEndpoint).meta({ description: "Oldest first, at most 20." }), sandbox })
  .meta({ id: "WebhookList" });
export type WebhookList = z.output<typeof webhookList>;

examples.add(webhookList, {
  one: { summary: "One endpoint", value: { webhooks: [WEBHOOK] } },
});

export const deletedWebhook = z
  .object({
    id: webhookId,
    deleted: z.literal(true).meta({ description: "It is deleted, with its deliveries." }),
    sandbox,
  })
  .meta({ id: "DeletedWebhook" });
export type DeletedWebhook = z.output<typeof deletedWebhook>;

examples.add(deletedWebhook, {
  deleted: { summary: "Deleted", value: { id: EXAMPLE.webhookId, deleted: true } },
});

/** How long after a rotation requests are also signed with the secret that it replaced. */
export const PREVIOUS_SECRET_HOURS = 24;

export const rotatedWebhook = z
  .object({
    id: webhookId,
    secret,
    previousSecretUntil: timestamp(
      "Until then, requests are also signed with the previous secret.",
      EXAMPLE.redeemedAt,
    ),
    sandbox,
  })
  .meta({ id: "RotatedWebhook" });
export type RotatedWebhook = z.output<typeof rotatedWebhook>;

examples.add(rotatedWebhook, {
  rotated: {
    summary: "Both secrets sign for 24 hours",
    value: { id: EXAMPLE.webhookId, secret: EXAMPLE.webhookSecret, previousSecretUntil: EXAMPLE.redeemedAt },
  },
});

const lastStatus = z
  .int()
  .nullable()
  .meta({ description: "The HTTP status of the last attempt; null when it got no answer.", examples: [204] });
const lastFailure = z
  .enum(DELIVERY_FAILURES)
  .nullable()
  .meta({ description: "Why the last attempt failed; null when it did not." });

export const testedWebhook = z
  .object({
    delivered: z.boolean().meta({ description: "Whether it answered with a status from 200 to 299." }),
    status: lastStatus,
    failure: lastFailure,
    durationMs: count(0, "How long it took. Milliseconds.", 87),
    sandbox,
  })
  .meta({ id: "WebhookTestResult" });
export type TestedWebhook = z.output<typeof testedWebhook>;

examples.add(testedWebhook, {
  delivered: { summary: "It works", value: { delivered: true, status: 204, failure: null, durationMs: 87 } },
  refused: { summary: "It answered 500", value: { delivered: false, status: 500, failure: "status", durationMs: 31 } },
  timeout: {
    summary: "It did not answer",
    value: { delivered: false, status: null, failure: "timeout", durationMs: 15_000 },
  },
});

const eventId = z.string().meta({
  description: "The `webhook-id` header: the same in every attempt.",
  examples: [`${EXAMPLE.voucherId}-2`],
});

const webhookDelivery = z
  .object({
    eventId,
    eventType: z.enum(WEBHOOK_EVENT_TYPES).meta({ description: "What happened." }),
    voucherId,
    sequence: sequence.nullable().meta({ description: "Null for `reservation.expired`." }),
    state: z.enum(DELIVERY_STATES).meta({
      description:
        "Delivered: it answered with a status from 200 to 299. Failed: no attempt follows, unless it is replayed.",
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
  })
  .meta({ id: "WebhookDelivery" });
export type WebhookDeliveryView = z.output<typeof webhookDelivery>;

export const deliveriesQuery = z.object({
  state: z
    .enum(DELIVERY_STATES, `must be one of ${DELIVERY_STATES.join(", ")}`)
    .optional()
    .meta({ description: "Only deliveries in this state." }),
  cursor: queryCursor("The previous page's `nextCursor`; omit it for the first page."),
  limit: queryInteger(1, DELIVERIES_LIMIT_MAX, 100, "Maximum number of deliveries on the page."),
});
export type DeliveriesQuery = z.output<typeof deliveriesQuery>;

export const deliveriesResponse = z
  .object({
    deliveries: z
      .array(webhookDelivery)
      .meta({ description: `Newest first, of the last ${DELIVERIES_KEPT_DAYS} days.` }),
    nextCursor: z
      .string()
      .nullable()
      .meta({ description: "Send it as `cursor` for the next page; null on the last one." }),
    sandbox,
  })
  .meta({ id: "WebhookDeliveries" });
export type DeliveriesResponse = z.output<typeof deliveriesResponse>;

examples.add(deliveriesResponse, {
  last: {
    summary: "The last page",
    value: {
      deliveries: [
        {
          eventId: `${EXAMPLE.voucherId}-2`,
          eventType: "voucher.instance.redeemed",
          voucherId: EXAMPLE.voucherId,
          sequence: 2,
          state: "Delivered",
          attempts: 1,
          nextAttemptAt: null,
          lastStatus: 204,
          lastFailure: null,
          createdAt: EXAMPLE.redeemedAt,
          finishedAt: EXAMPLE.redeemedAt,
        },
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
      .array(z.string({ error: "must be a list of event ids" }).max(EVENT_ID_MAX, "has an entry that is no event id"), {
        error: "must be a list of event ids",
      })
      .min(1, "must not be empty")
      .max(REPLAY_IDS_MAX, `must have at most ${REPLAY_IDS_MAX} entries`)
      .optional()
      .meta({ description: "Replays these events.", examples: [[`${EXAMPLE.voucherId}-2`]] }),
  })
  .refine(
    ({ from, to, eventIds }) => (eventIds === undefined ? from !== undefined && to !== undefined : !from && !to),
    "either eventIds, or from and to, are required",
  )
  .refine(({ from, to }) => from === undefined || to === undefined || from < to, "from must be before to")
  .meta({ id: "ReplayWebhookRequest" });
export type ReplayRequest = z.output<typeof replayRequest>;

examples.add(replayRequest, {
  time: {
    summary: "By time",
    value: { from: "2026-11-21T00:00:00+01:00", to: "2026-11-22T00:00:00+01:00" },
  },
  ids: { summary: "By ids", value: { eventIds: [`${EXAMPLE.voucherId}-2`] } },
});

export const replayResponse = z
  .object({ replayed: count(0, `Deliveries that are sent again: at most ${REPLAY_MAX}, oldest first.`, 12), sandbox })
  .meta({ id: "WebhookReplay" });
export type ReplayResponse = z.output<typeof replayResponse>;

examples.add(replayResponse, {
  replayed: { summary: "Twelve are sent again", value: { replayed: 12 } },
});
