import { z } from "zod";
import { EXAMPLE, examples } from "../../../platform/api/example.ts";
import {
  count,
  flag,
  INTEGER_MAX,
  named,
  pickFields,
  queryInteger,
  sandbox,
  sha256,
  text,
  timestamp,
  voucherId,
} from "../../../platform/api/fields.ts";
import { ENTITY_TYPE } from "../../voucher/voucher.ts";
import { ANCHOR_NAMESPACE, EVENT_CODES, EVENT_TYPES, type EventContent, GENESIS_HASH, sealEvent } from "../chain.ts";

/** Maximum and default number of events on one page. */
const EVENTS_LIMIT_MAX = 1_000;
/** Default number of events on an HTML page: a few screens. */
const EVENTS_PAGE_LIMIT = 50;

export const entityType = text("The type of the chain's entity.", ENTITY_TYPE);
export const entityId = text("The voucher's id.", EXAMPLE.voucherId);

export const eventsQuery = z.object({
  after: queryInteger(0, INTEGER_MAX, 0, "Only events with a greater `sequence`."),
  limit: queryInteger(1, EVENTS_LIMIT_MAX, EVENTS_LIMIT_MAX, "Maximum number of events on the page."),
});

export type EventsQuery = z.output<typeof eventsQuery>;

/** The query of a history's HTML page. */
export const eventsPageQuery = eventsQuery.extend({
  limit: queryInteger(1, EVENTS_LIMIT_MAX, EVENTS_PAGE_LIMIT, "Maximum number of events on the page."),
});

/** The fields of an event that partners and the public see. */
const seenEvent = z.object({
  sequence: count(1, "The event's position in the chain: 1, 2, 3, without gaps.", 1),
  eventType: z.enum(EVENT_TYPES).meta({ description: "What happened. Later releases may add types.", "x-open": true }),
  code: z
    .enum(Object.values(EVENT_CODES))
    .meta({ description: "A short code of the event's type. Later releases may add codes.", "x-open": true }),
  occurredAt: timestamp("When it happened.", EXAMPLE.redeemedAt),
  sealStatus: z.enum(["Pending", "Sealed"]).meta({
    description:
      "Sealed: hashed, linked and never changed again, except that its payload may be erased. Pending: it happened " +
      "and will be sealed within seconds. Later releases may add values.",
    "x-open": true,
  }),
  recordHash: sha256("The lower-case hex SHA-256 of the event's payload. Null while the event is Pending.").nullable(),
  logIndex: z
    .int()
    .min(0)
    .nullable()
    .meta({
      description:
        "The event's leaf in the transparency log. Null until the served checkpoint covers it, and in a " +
        "deployment without a log.",
      examples: [70_311],
    }),
  previousHash: sha256(
    "The previous event's `recordHash`; 64 zeros for the first event. Null while the event is Pending.",
  ).nullable(),
  erasedBy: count(2, "Present if the payload was erased: the sequence of the event that says so.", 3).optional(),
  erasedSequences: z.array(z.int().min(1)).optional().meta({
    description: "Present in an event of type `voucher.instance.erased`: the earlier events whose payloads it erased.",
  }),
});

/** An event without its payload and actor. */
export const publicEvent = named("PublicEvent", {
  ...seenEvent.shape,
  payloadKept: flag(
    "Whether the service has the text with this `recordHash`, compared at each call. False while the event is " +
      "Pending, and after its payload was erased. Otherwise the chain is broken at a sealed event with `false`.",
  ),
});

export type PublicEvent = z.output<typeof publicEvent>;

/** An event with its payload and actor, for the voucher's own partner. */
export const partnerEvent = seenEvent
  .extend({
    payload: text(
      "The exact text that was hashed: canonical JSON (RFC 8785). Hash this string exactly as received; do not " +
        "parse and re-encode it. It contains codes. Null while the event is Pending, and after it was erased.",
    ).nullable(),
    actorConnectedId: text(
      "Who did it: the key's id for a partner, the token's subject for a user, null for the issuer or the service " +
        "itself.",
      EXAMPLE.keyId,
    ).nullable(),
    actorIsEmployee: z.boolean().nullable().meta({
      description: "For a user: whether they belong to the brand's organization. Null for all others.",
    }),
  })
  .meta({ id: "Event" });

export type PartnerEvent = z.output<typeof partnerEvent>;

function chainOf<Event extends z.ZodType>(event: Event) {
  return z.object({
    entityType: z.literal(ENTITY_TYPE).meta({ description: "The type of the chain's entity." }),
    entityId: voucherId,
    anchorNamespace: z.literal(ANCHOR_NAMESPACE).meta({ description: "The namespace of these events." }),
    events: z.array(event).meta({ description: "In the order of `sequence`." }),
    canonPreservedSinceUtc: timestamp(
      "The time since which this service has stored the exact payloads.",
      EXAMPLE.issuedAt,
    ),
    hasMore: flag("Whether there are more events. To read them, set `after` to the last `sequence` of this page."),
    sandbox,
  });
}

/** A page of a chain, for the voucher's own partner. */
export const partnerChain = chainOf(partnerEvent).meta({ id: "Chain" });
export type PartnerChain = z.output<typeof partnerChain>;

/** A page of a chain, without payloads and actors, for everyone. */
export const publicChain = chainOf(publicEvent).meta({ id: "PublicChain" });
export type PublicChain = z.output<typeof publicChain>;

/** Seals one event of the example voucher's chain. */
function exampleEvent(
  content: Pick<EventContent, "sequence" | "eventType" | "actorConnectedId" | "data">,
  at: string,
  previousHash: string,
) {
  const event = { ...content, occurredAt: new Date(at), actorIsEmployee: null };
  const seal = sealEvent({ ...event, voucherId: EXAMPLE.voucherId }, previousHash);
  return pickFields(partnerEvent, {
    ...event,
    ...seal,
    code: EVENT_CODES[event.eventType],
    occurredAt: at,
    sealStatus: "Sealed",
    logIndex: 70_310 + event.sequence,
  });
}

const { code: voucherCode, serial, productKey, validUntil, retailPriceUsd, priceUsd } = EXAMPLE;
const { externalRef, redeemCode, ticket } = EXAMPLE;
const prices = { retailPriceUsd, priceUsd };

const issuedData = { voucherCode, serial, productKey, audience: "OpenToAll", validUntil, ...prices };
const issued = exampleEvent(
  {
    sequence: 1,
    eventType: "voucher.instance.issued",
    actorConnectedId: null,
    data: { nonce: "59651d9fa3c6d96f7bc1fdda5c07a4f7", ...issuedData },
  },
  EXAMPLE.issuedAt,
  GENESIS_HASH,
);

const redeemedData = { voucherCode, serial, externalRef, redeemCode, ticket, ...prices };
const redeemed = exampleEvent(
  {
    sequence: 2,
    eventType: "voucher.instance.redeemed",
    actorConnectedId: EXAMPLE.keyId,
    data: { nonce: "935d21c1466ab95da43e35d256da89d3", ...redeemedData },
  },
  EXAMPLE.redeemedAt,
  issued.recordHash ?? "",
);

/** An example chain with real hashes, so that a verifier accepts it. */
export const CHAIN_EXAMPLE: PartnerChain = {
  entityType: ENTITY_TYPE,
  entityId: EXAMPLE.voucherId,
  anchorNamespace: ANCHOR_NAMESPACE,
  events: [issued, redeemed],
  canonPreservedSinceUtc: "2026-09-01T06:00:00.000Z",
  hasMore: false,
};

examples.add(partnerChain, {
  chain: { summary: "Issued and redeemed", value: CHAIN_EXAMPLE },
});

examples.add(publicChain, {
  chain: {
    summary: "Issued and redeemed",
    value: {
      ...CHAIN_EXAMPLE,
      events: CHAIN_EXAMPLE.events.map((event) => pickFields(publicEvent, { ...event, payloadKept: true })),
    },
  },
});
