import type { EventType } from "../../domain/chain.ts";

/** What an event means, for a person who has never heard of event types. */
export interface EventWords {
  title: string;
  sentence: string;
}

const WORDS: Record<EventType, EventWords> = {
  "voucher.instance.issued": { title: "Issued", sentence: "The voucher was created." },
  "voucher.instance.claimed": { title: "Claimed", sentence: "A user claimed the voucher." },
  "voucher.instance.bought": { title: "Bought", sentence: "A user bought the voucher." },
  "voucher.instance.redeemed": {
    title: "Redeemed",
    sentence: "The voucher was used at a checkout. It cannot be used again.",
  },
  "voucher.instance.voided": { title: "Cancelled", sentence: "The issuer cancelled the voucher. It cannot be used." },
  "voucher.instance.expired": { title: "Expired", sentence: "The voucher's time ran out before it was used." },
};

/** The words for an event; for a type that has none, the type itself. */
export function describeEvent(eventType: string): EventWords {
  return Object.hasOwn(WORDS, eventType) ? WORDS[eventType as EventType] : { title: eventType, sentence: "" };
}
