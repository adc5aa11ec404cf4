import { z } from "zod";
import {
  ANCHOR_NAMESPACE,
  ENTITY_TYPE,
  EVENT_CODES,
  type EventContent,
  type EventType,
  GENESIS_HASH,
  sealEvent,
} from "../../domain/chain.ts";
import { EXAMPLE } from "./example.ts";
import { count, sha256, timestamp, voucherId } from "./values.ts";

const EVENT_TYPES = Object.keys(EVENT_CODES) as [EventType, ...EventType[]];

const publicEvent = z.object({
  sequence: count(1, "The event's place in the chain: 1, 2, 3 without gaps.", 1),
  eventType: z.enum(EVENT_TYPES).meta({ description: "What happened." }),
  code: z.enum(Object.values(EVENT_CODES)).meta({ description: "A short code of the event's type." }),
  occurredAt: timestamp("When it happened.", EXAMPLE.redeemedAt),
  sealStatus: z.enum(["Pending", "Sealed"]).meta({
    description: "Sealed: hashed and linked, and never changes again. Pending: happened, and is sealed within seconds.",
  }),
  recordHash: sha256("The lower-case hex SHA-256 of the event's payload. Null while it is Pending.").nullable(),
  previousHash: sha256(
    "The `recordHash` of the event before; 64 zeros for the first. Null while it is Pending.",
  ).nullable(),
});

const partnerEvent = publicEvent.extend({
  payload: z.string().nullable().meta({
    description:
      "The exact text that was hashed: canonical JSON (RFC 8785). Hash it as it comes out of the JSON parser; never parse and write it again. It carries codes. Null while the event is Pending.",
  }),
  actorConnectedId: z
    .string()
    .nullable()
    .meta({
      description:
        "Who did it: a key's id for a partner, the subject for a user, null for the issuer or the service itself.",
      examples: [EXAMPLE.keyId],
    }),
  actorIsEmployee: z.boolean().nullable().meta({
    description: "Of a user: whether they belong to the brand's organization. Null for everyone else.",
  }),
});

function chainOf<Event extends z.ZodType>(event: Event) {
  return z.object({
    entityType: z.literal(ENTITY_TYPE).meta({ description: "What the chain is of." }),
    entityId: voucherId,
    anchorNamespace: z.literal(ANCHOR_NAMESPACE).meta({ description: "The name space of these events." }),
    events: z.array(event).meta({ description: "In the order of `sequence`." }),
    canonPreservedSinceUtc: timestamp("Since when this service has kept the exact payloads.", EXAMPLE.issuedAt),
    hasMore: z.boolean().meta({
      description: "There are more events: ask again with `after` set to the last `sequence` of this page.",
    }),
  });
}

/** A chain as its own partner sees it (contract, "Sealed event chain"). */
export const partnerChain = chainOf(partnerEvent.meta({ id: "Event" })).meta({ id: "Chain" });

/** A chain as anyone sees it: without payloads, which carry codes, and without actors. */
export const publicChain = chainOf(publicEvent.meta({ id: "PublicEvent" })).meta({ id: "PublicChain" });

function exampleEvent(content: Omit<EventContent, "voucherId" | "actorIsEmployee">, previousHash: string) {
  const event = { ...content, actorIsEmployee: null };
  const seal = sealEvent({ ...event, voucherId: EXAMPLE.voucherId }, previousHash);
  return {
    sequence: event.sequence,
    eventType: event.eventType,
    code: EVENT_CODES[event.eventType],
    occurredAt: event.occurredAt.toISOString(),
    sealStatus: "Sealed" as const,
    recordHash: seal.recordHash,
    previousHash,
    payload: seal.payload,
    actorConnectedId: event.actorConnectedId,
    actorIsEmployee: event.actorIsEmployee,
  };
}

const issued = exampleEvent(
  {
    sequence: 1,
    eventType: "voucher.instance.issued",
    occurredAt: new Date(EXAMPLE.issuedAt),
    actorConnectedId: null,
    data: {
      nonce: "59651d9fa3c6d96f7bc1fdda5c07a4f7",
      voucherCode: EXAMPLE.code,
      serial: EXAMPLE.serial,
      productKey: EXAMPLE.productKey,
      audience: "OpenToAll",
      validUntil: EXAMPLE.validUntil,
      retailPriceUsd: EXAMPLE.retailPriceUsd,
      priceUsd: EXAMPLE.priceUsd,
    },
  },
  GENESIS_HASH,
);

const burnt = exampleEvent(
  {
    sequence: 2,
    eventType: "voucher.instance.redeemed",
    occurredAt: new Date(EXAMPLE.redeemedAt),
    actorConnectedId: EXAMPLE.keyId,
    data: {
      nonce: "935d21c1466ab95da43e35d256da89d3",
      voucherCode: EXAMPLE.code,
      serial: EXAMPLE.serial,
      externalRef: EXAMPLE.externalRef,
      redeemCode: EXAMPLE.redeemCode,
      ticket: EXAMPLE.ticket,
      retailPriceUsd: EXAMPLE.retailPriceUsd,
      priceUsd: EXAMPLE.priceUsd,
    },
  },
  issued.recordHash,
);

/** The example's chain, really sealed, so that whoever tries a verifier on it finds it good. */
export const CHAIN_EXAMPLE: z.infer<typeof partnerChain> = {
  entityType: ENTITY_TYPE,
  entityId: EXAMPLE.voucherId,
  anchorNamespace: ANCHOR_NAMESPACE,
  events: [issued, burnt],
  canonPreservedSinceUtc: "2026-09-01T06:00:00.000Z",
  hasMore: false,
};

export const PUBLIC_CHAIN_EXAMPLE: z.infer<typeof publicChain> = {
  ...CHAIN_EXAMPLE,
  events: CHAIN_EXAMPLE.events.map(
    ({ payload: _payload, actorConnectedId: _actor, actorIsEmployee: _employee, ...event }) => event,
  ),
};
