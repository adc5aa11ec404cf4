import type { Language } from "../../platform/api/sentences/languages.ts";
import { DE } from "./de.ts";
import { EN } from "./en.ts";
import { ES } from "./es.ts";
import { FR } from "./fr.ts";
import { NL } from "./nl.ts";
import type { PageTexts } from "./page-texts.ts";
import { SCRIPT_DE } from "./script-de.ts";
import { SCRIPT_ES } from "./script-es.ts";
import { SCRIPT_FR } from "./script-fr.ts";
import { SCRIPT_NL } from "./script-nl.ts";
import type { ScriptTexts } from "./script-texts.ts";

/** The sentences of the pages' scripts, by language. The scripts themselves contain the English sentences. */
export const SCRIPT_TEXTS: Record<Exclude<Language, "en">, ScriptTexts> = {
  de: SCRIPT_DE,
  fr: SCRIPT_FR,
  es: SCRIPT_ES,
  nl: SCRIPT_NL,
};

/** The texts of pages, by language. */
export const TEXTS: Record<Language, PageTexts> = { en: EN, de: DE, fr: FR, es: ES, nl: NL };
