import type { Response } from "express";
import { LANGUAGES, type Language } from "../platform/api/sentences/languages.ts";
import { languageOf } from "../platform/http/middleware/reader-language.ts";
import type { Html } from "./html.ts";
import type { PageTexts } from "./texts/page-texts.ts";
import { TEXTS } from "./texts/texts.ts";
import { DATE_LOCALES, type MINUTES, renderTime } from "./time.ts";

/** The texts of a language, and how it writes moments, amounts and numbers. */
export interface Locale {
  language: Language;
  texts: PageTexts;
  usd: Intl.NumberFormat;
  count: Intl.NumberFormat;
  /** A moment in UTC, to the second or to the minute. */
  time(at: string | Date, precision?: typeof MINUTES): Html;
}

const LOCALES = new Map<Language, Locale>(
  LANGUAGES.map((language) => {
    const tag = language === "en" ? "en-US" : DATE_LOCALES[language];
    return [
      language,
      {
        language,
        texts: TEXTS[language],
        usd: new Intl.NumberFormat(tag, { style: "currency", currency: "USD" }),
        count: new Intl.NumberFormat(tag),
        time: (at, precision) => renderTime(at, precision, language),
      },
    ];
  }),
);

/** The locale of a language. */
export function localeIn(language: Language): Locale {
  return LOCALES.get(language) as Locale;
}

/** The locale of pages for developers and operators. */
export const ENGLISH = localeIn("en");

/** The locale of the page that this response sends. */
export function localeOf(response: Response): Locale {
  return localeIn(languageOf(response));
}
