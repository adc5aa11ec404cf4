import { EVENT_CODES, type EventType } from "../core/chain/chain.ts";
import { ENGLISH, type Locale } from "./locale.ts";

/** An event type in words for the public. */
interface EventWords {
  title: string;
  sentence: string;
  /** The voucher's state after the event, if the event proves that the voucher is unused. */
  outcome?: string;
}

/** After these events, the voucher may have been redeemed. Every other event proves that it is unused. */
const MAY_BE_REDEEMED: readonly string[] = [
  "voucher.instance.redeemed",
  "voucher.instance.erased",
] satisfies EventType[];

/** The words for an event type. For an unknown type, the type itself. */
export function describeEvent(eventType: string, { t }: Locale = ENGLISH): EventWords {
  if (!Object.hasOwn(EVENT_CODES, eventType)) return { title: eventType, sentence: "" };
  const key = `events.${eventType as EventType}` as const;
  const words = { title: t(`${key}.title`), sentence: t(`${key}.sentence`) };
  return MAY_BE_REDEEMED.includes(eventType) ? words : { ...words, outcome: t("events.unused") };
}
