import type { Response } from "express";
import {
  type Language,
  type SentenceKey,
  sentencesOf,
  type Translate,
  translateInto,
  type ValuesOf,
} from "../platform/api/sentences.ts";
import { languageOf } from "../platform/http/middleware/reader-language.ts";
import { Html, html } from "./html.ts";
import { DATE_LOCALES, formatsOf, type MINUTES, renderEnd, renderTime, type TimeForm } from "./time.ts";

type MarkupValue = string | number | Html;

/** The sentences of a page's language, and its formats for moments, amounts and numbers. */
export interface Locale {
  language: Language;
  /** A sentence as text. */
  t: Translate;
  /** A sentence as markup. The sentence and its values may contain markup. Values that are plain text are escaped. */
  markup: <Key extends SentenceKey>(key: Key, ...values: ValuesOf<Key, MarkupValue>) => Html;
  usd: Intl.NumberFormat;
  count: Intl.NumberFormat;
  /** The time zone of moments and days. */
  timeZone: string;
  /** The same language and formats, with moments in another time zone. */
  in(timeZone: string): Locale;
  /** A moment in the time zone, to the second or to the minute. */
  time(at: string | Date, precision?: typeof MINUTES): Html;
  /** The same as `time` without the date, for lists of one day. */
  timeOfDay(at: string | Date): Html;
  /** The end of a validity. `at` is the first invalid moment. Shows the last valid day, or the minute of the end. */
  end(at: Date): Html;
  /** A moment as a wall clock in the zone shows it: `YYYY-MM-DD hh:mm:ss`. */
  wallClock(at: Date): string;
  /** A calendar day, `YYYY-MM-DD`. `tick` is the short form for an axis. */
  day(day: string, form?: "date" | "tick"): string;
  /** A calendar month, `YYYY-MM`. */
  month(month: string): string;
}

function markupIn(t: Translate): Locale["markup"] {
  const toMarkup = (value: MarkupValue) => (typeof value === "number" ? value : html`${value}`.markup);
  return (key, ...[values]) => {
    const given = Object.entries<MarkupValue>(values ?? {}).map(([name, value]) => [name, toMarkup(value)] as const);
    // The cast is needed because TypeScript does not know the property names of an object made by `fromEntries`.
    return new Html(t(key, ...([Object.fromEntries(given)] as unknown as ValuesOf<typeof key>)));
  };
}

function makeLocale(language: Language, form: Partial<TimeForm> = {}): Locale {
  const { tag, timeZone } = { tag: DATE_LOCALES[language], timeZone: "UTC", ...form };
  const shown = { ...form, tag, timeZone };
  const numbers = tag === DATE_LOCALES.en ? "en-US" : tag;
  // Days are formatted from dates without a time, so their formats must use UTC.
  const calendar = { tag, timeZone: "UTC" };
  return {
    language,
    t: translateInto(language),
    markup: markupIn(translateInto(language)),
    usd: new Intl.NumberFormat(numbers, { style: "currency", currency: "USD" }),
    count: new Intl.NumberFormat(numbers),
    timeZone,
    in: (zone) => makeLocale(language, { ...shown, timeZone: zone }),
    time: (at, precision) => renderTime(at, precision, shown),
    timeOfDay: (at) => renderTime(at, undefined, shown, false),
    end: (at) => renderEnd(at, shown),
    wallClock: (at) => formatsOf(shown).wall.format(at),
    day: (day, form = "date") => formatsOf(calendar)[form].format(new Date(day)),
    month: (month) => formatsOf(calendar).month.format(new Date(`${month}-01`)),
  };
}

/** Each locale is made when it is first used. Making all of them would take a tenth of a process's start. */
const LOCALES = new Map<Language, Locale>();

/** The locale of a language, with times in UTC. */
export function localeIn(language: Language): Locale {
  const locale = LOCALES.get(language) ?? makeLocale(language);
  LOCALES.set(language, locale);
  return locale;
}

/** The locale of pages for developers and operators. */
export const ENGLISH = localeIn("en");

/** The locale of the page that this response sends. */
export function localeOf(response: Response): Locale {
  return localeIn(languageOf(response));
}

/** The locale of this response in a time zone, with the reader's formats, and with UTC beside each moment. */
export function localeForReader(response: Response, timeZone: string): Locale {
  const language = languageOf(response);
  const { localeTag: tag = DATE_LOCALES[language] } = response.locals;
  return makeLocale(language, { tag, timeZone, withUtc: true });
}

/** The sentences of a page's scripts as JSON. If `part` is given, only those of this script. */
export function sentencesOfScripts(language: Language, part = ""): string {
  const ofScripts = Object.entries(sentencesOf(language)).filter(([key]) => key.startsWith(`script.${part}`));
  const json = JSON.stringify(Object.fromEntries(ofScripts.map(([key, text]) => [key.slice("script.".length), text])));
  // The escape prevents a text from closing the element that contains it.
  return json.replaceAll("<", "\\u003c");
}

/** The sentences of a page's scripts, as JSON. Null in English, because the scripts contain these sentences. */
export function renderScriptTexts({ language }: Locale, part = ""): Html | null {
  if (language === "en") return null;
  const json = sentencesOfScripts(language, part);
  return new Html(`<script type="application/json" id="script-texts">${json}</script>\n`);
}
