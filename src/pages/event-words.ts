import type { EventType } from "../core/chain/chain.ts";
import { ENGLISH, type Locale } from "./locale.ts";
import type { EventWords } from "./texts/page-texts.ts";

/** The text for an event type; for an unknown type, the type itself. */
export function describeEvent(eventType: string, { texts }: Locale = ENGLISH): EventWords {
  return Object.hasOwn(texts.events, eventType)
    ? texts.events[eventType as EventType]
    : { title: eventType, sentence: "" };
}
