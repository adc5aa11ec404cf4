import type { Language } from "../platform/api/sentences.ts";
import { type Html, html } from "./html.ts";

/** The locale in which pages of a language write dates, amounts and numbers. */
export const DATE_LOCALES: Record<Language, string> = {
  en: "en-GB",
  de: "de-DE",
  fr: "fr-FR",
  es: "es-ES",
  nl: "nl-NL",
};

const SECONDS = "medium";
/** The precision that shows a moment to the minute. */
export const MINUTES = "short";

function makeFormats(locale: string) {
  const utc = { timeZone: "UTC" } as const;
  return {
    date: new Intl.DateTimeFormat(locale, { dateStyle: "long", ...utc }),
    short: new Intl.DateTimeFormat(locale, { timeStyle: MINUTES, ...utc }),
    medium: new Intl.DateTimeFormat(locale, { timeStyle: SECONDS, ...utc }),
  };
}

const FORMATS = {} as Record<Language, ReturnType<typeof makeFormats>>;

/** Made when a language is first used and then kept: making a format takes longer than making a page. */
function formatsOf(language: Language) {
  FORMATS[language] ??= makeFormats(DATE_LOCALES[language]);
  return FORMATS[language];
}

/** A moment in UTC, to the second by default. Scripts read the exact time from the attribute `datetime`. */
export function renderTime(
  at: string | Date,
  precision: typeof SECONDS | typeof MINUTES = SECONDS,
  language: Language = "en",
): Html {
  const moment = new Date(at);
  const formats = formatsOf(language);
  const shown = `${formats.date.format(moment)}, ${formats[precision].format(moment)} UTC`;
  return html`<time datetime="${moment.toISOString()}">${shown}</time>`;
}

/**
 * The end of a validity, in UTC: the day alone if it ends in the last minutes of that day, otherwise the day and the
 * time.
 */
export function renderEnd(end: Date): Html {
  const last = new Date(end.getTime() - 1);
  const { date, short } = formatsOf("en");
  if (short.format(last) < "23:58") return renderTime(end, MINUTES);
  return html`<time datetime="${end.toISOString()}">${date.format(last)}</time>`;
}
