import { DE } from "./de.ts";
import { EN } from "./en.ts";
import { ES } from "./es.ts";
import { FR } from "./fr.ts";
import { NL } from "./nl.ts";
import type { Sentences } from "./sentences.ts";

/** The languages of sentences and pages. The first one is the default. */
export const LANGUAGES = ["en", "de", "fr", "es", "nl"] as const;
export type Language = (typeof LANGUAGES)[number];

/** What the service says, by language. */
export const SENTENCES: Record<Language, Sentences> = { en: EN, de: DE, fr: FR, es: ES, nl: NL };
