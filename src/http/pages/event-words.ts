import type { EventType } from "../../domain/chain.ts";

/** An event type in words for the public. */
interface EventWords {
  title: string;
  sentence: string;
  /** What holds after the event, if the voucher is still unused. */
  outcome?: string;
}

const UNUSED = "It has not been redeemed.";

const WORDS: Record<EventType, EventWords> = {
  "voucher.instance.issued": { title: "Issued", sentence: "The voucher was created.", outcome: UNUSED },
  "voucher.instance.claimed": { title: "Claimed", sentence: "A user claimed the voucher.", outcome: UNUSED },
  "voucher.instance.bought": { title: "Bought", sentence: "A user bought the voucher.", outcome: UNUSED },
  "voucher.instance.redeemed": {
    title: "Redeemed",
    sentence: "The voucher was used at a checkout. It cannot be used again.",
  },
  "voucher.instance.voided": { title: "Cancelled", sentence: "The issuer cancelled the voucher. It cannot be used." },
  "voucher.instance.expired": { title: "Expired", sentence: "The voucher was not used before its end date." },
};

/** The words for an event type; for an unknown type, the type itself. */
export function describeEvent(eventType: string): EventWords {
  return Object.hasOwn(WORDS, eventType) ? WORDS[eventType as EventType] : { title: eventType, sentence: "" };
}
