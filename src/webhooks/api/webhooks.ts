import { z } from "zod";
import { EVENT_TYPES, type EventType } from "../../core/chain/chain.ts";
import { UNANNOUNCED } from "../../core/chain/seal-events.ts";
import { EXAMPLE, examples } from "../../platform/api/example.ts";
import {
  count,
  filledTextUpTo,
  flag,
  named,
  redeemCode,
  sampleOf,
  sandbox,
  sha256,
  text,
  textUpTo,
  timestamp,
  voucherId,
} from "../../platform/api/fields.ts";
import { problem } from "../../platform/api/problems.ts";
import { ENDPOINTS_MAX, FAILING_MAX_DAYS, PREVIOUS_SECRET_HOURS } from "../webhook-limits.ts";

/** The event type of a test request. An endpoint need not subscribe to it. */
export const WEBHOOK_TEST_TYPE = "webhook.test";

/** Why an endpoint is disabled. */
const WEBHOOK_DISABLED_REASONS = ["partner", "operator", "gone", "failing"] as const;
export type WebhookDisabledReason = (typeof WEBHOOK_DISABLED_REASONS)[number];

const WEBHOOK_URL_MAX = 2_048;
const DESCRIPTION_MAX = 200;
export const sequence = count(1, "The event's position in the voucher's chain.", 2);
const recordHash = sha256("The event's `recordHash` in the voucher's chain.");
const occurredAt = timestamp("When it happened.", EXAMPLE.redeemedAt);

const sealed = { voucherId, sequence, recordHash };

function eventOf<const Type extends string, Data extends z.ZodRawShape>(type: Type, id: string, data: Data) {
  return named(id, {
    type: z.literal(type).meta({ description: "The type of the event." }),
    timestamp: occurredAt,
    data: z.object({ ...data, sandbox }).meta({ description: "What has happened." }),
  });
}

/** Event types whose names webhooks keep, as insert_deliveries does. Webhooks omit `instance.` in all later names. */
const NAMED_AS_IN_CHAIN = /\.(redeemed|voided|expired|claimed|bought)$/;
/** Fields of an event's data that its webhook request contains, in addition to the event's position in the chain. */
const FROM_DATA: Partial<Record<EventType, z.ZodRawShape>> = {
  "voucher.instance.redeemed": {
    externalRef: text("The reference under which the voucher was redeemed.", EXAMPLE.externalRef),
    redeemCode,
  },
  "voucher.instance.extended": { validUntil: timestamp("The voucher's new end.", EXAMPLE.validUntil) },
};

/** The schema of a request about an event of this type. */
function sentOf(type: EventType) {
  const what = String(type.split(".").at(-1));
  const id = `Webhook${what.charAt(0).toUpperCase()}${what.slice(1)}`;
  return eventOf(NAMED_AS_IN_CHAIN.test(type) ? type : `voucher.${what}`, id, { ...sealed, ...FROM_DATA[type] });
}

/** The schema of a request for each event type to which an endpoint can subscribe. */
const SENT = [
  eventOf("reservation.expired", "WebhookReservationExpired", {
    voucherId,
    startedAt: timestamp("When the reservation began.", EXAMPLE.reservedAt),
    expiresAt: timestamp("When it expired, as the answer to reserve said.", EXAMPLE.reservedUntil),
  }),
  ...EVENT_TYPES.filter((type) => !UNANNOUNCED.includes(type)).map(sentOf),
] as const;

/** The event types to which an endpoint can subscribe. */
export const WEBHOOK_EVENT_TYPES = SENT.map(({ shape }) => shape.type.value);
export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number];

/** An event type in a response. */
export const knownEventType = z
  .enum(WEBHOOK_EVENT_TYPES)
  .meta({ description: "What happened. Later releases may add types.", "x-open": true });

/** The body of a webhook request. It has no voucher code, no ticket and no token. Fields are sent in this order. */
export const webhookEvent = z
  .discriminatedUnion("type", [
    ...SENT,
    eventOf(WEBHOOK_TEST_TYPE, "WebhookTest", {
      webhookId: text("The endpoint that was tested.", EXAMPLE.webhookId),
    }),
  ])
  .meta({ id: "WebhookEvent" });

export type WebhookBody = z.output<typeof webhookEvent>;

const url = filledTextUpTo(
  WEBHOOK_URL_MAX,
  "Where requests are sent: https, port 443 or 8443, a public address, no user name, password or fragment.",
  EXAMPLE.webhookUrl,
);
const description = textUpTo(DESCRIPTION_MAX, "A name for your own use.", "orders of the web shop");
const eventTypes = z
  .array(z.enum(WEBHOOK_EVENT_TYPES, problem("noEventTypes", { types: WEBHOOK_EVENT_TYPES.join(", ") })), {
    error: problem("noEventTypes", { types: WEBHOOK_EVENT_TYPES.join(", ") }),
  })
  .max(WEBHOOK_EVENT_TYPES.length, problem("repeatedType"))
  .refine((types) => new Set(types).size === types.length, problem("repeatedType"))
  .meta({
    description: "The events that are sent. An empty list means all, also types that later versions add.",
    examples: [["voucher.instance.redeemed", "voucher.instance.voided"]],
  });
const enabled = z
  .boolean({ error: problem("notTrueOrFalse") })
  .meta({ description: "Whether events are sent. Events that happen while it is disabled are never sent." });

export const createWebhookRequest = named("CreateWebhookRequest", {
  url,
  description: description.default(""),
  eventTypes: eventTypes.default([]),
  enabled: enabled.default(true),
});

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

export const changeWebhookRequest = named("ChangeWebhookRequest", {
  url: url.optional(),
  description: description.optional(),
  eventTypes: eventTypes.optional(),
  enabled: enabled.optional(),
});

export type WebhookChange = z.output<typeof changeWebhookRequest>;

examples.add(changeWebhookRequest, {
  enable: { summary: "Enable it again", value: { enabled: true } },
});

export const webhookId = text("The endpoint's id.", EXAMPLE.webhookId);

export const webhookEndpoint = named("Webhook", {
  id: webhookId,
  url: z.string().meta({ format: "uri", description: "Where requests are sent.", examples: [EXAMPLE.webhookUrl] }),
  description: text("A name for your own use.", "orders of the web shop"),
  eventTypes: z.array(knownEventType).meta({ description: "The events that are sent. Empty: all." }),
  enabled: flag("Whether events are sent."),
  disabledReason: z
    .enum(WEBHOOK_DISABLED_REASONS)
    .nullable()
    .meta({
      description:
        "Why no events are sent: `partner` (a request disabled it), `operator` (only an operator can enable it " +
        "again), `gone` (it answered 410) or `failing` " +
        `(nothing but failures for ${FAILING_MAX_DAYS} days). Null while it is ` +
        "enabled.",
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
});

export type WebhookView = z.output<typeof webhookEndpoint>;

const WEBHOOK = sampleOf(webhookEndpoint, {
  eventTypes: ["voucher.instance.redeemed", "voucher.instance.voided"],
  enabled: true,
  disabledReason: null,
  disabledAt: null,
  failingSince: null,
  previousSecretUntil: null,
});

examples.add(webhookEndpoint, {
  enabled: { summary: "Enabled", value: WEBHOOK },
  gone: {
    summary: "Disabled after the answer 410",
    value: { ...WEBHOOK, enabled: false, disabledReason: "gone", disabledAt: EXAMPLE.redeemedAt },
  },
});

const secret = text(
  "Verifies signatures. Shown only here: save it now. In the form of Standard Webhooks: `whsec_` and 32 bytes in " +
    "base64.",
  EXAMPLE.webhookSecret,
);

export const newWebhook = webhookEndpoint.extend({ secret }).meta({ id: "NewWebhook" });
export type NewWebhookView = z.output<typeof newWebhook>;

examples.add(newWebhook, {
  created: { summary: "Created", value: { ...WEBHOOK, secret: EXAMPLE.webhookSecret } },
});

export const webhookList = named("WebhookList", {
  webhooks: z.array(webhookEndpoint).meta({ description: `Oldest first, at most ${ENDPOINTS_MAX}.` }),
  sandbox,
});
export type WebhookList = z.output<typeof webhookList>;

examples.add(webhookList, {
  one: { summary: "One endpoint", value: { webhooks: [WEBHOOK] } },
});

export const deletedWebhook = named("DeletedWebhook", {
  id: webhookId,
  deleted: z.literal(true).meta({ description: "It is deleted, with its deliveries." }),
  sandbox,
});
export type DeletedWebhook = z.output<typeof deletedWebhook>;

examples.add(deletedWebhook, {
  deleted: { summary: "Deleted", value: { id: EXAMPLE.webhookId, deleted: true } },
});

export const rotatedWebhook = named("RotatedWebhook", {
  id: webhookId,
  secret,
  previousSecretUntil: timestamp("Until then, requests are also signed with the previous secret.", EXAMPLE.redeemedAt),
  sandbox,
});
export type RotatedWebhook = z.output<typeof rotatedWebhook>;

examples.add(rotatedWebhook, {
  rotated: {
    summary: `Both secrets sign for ${PREVIOUS_SECRET_HOURS} hours`,
    value: sampleOf(rotatedWebhook),
  },
});
