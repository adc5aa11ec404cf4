import type { Response } from "express";
import {
  LANGUAGES,
  type Language,
  type SentenceKey,
  sentencesOf,
  type Translate,
  translateInto,
  type ValuesOf,
} from "../platform/api/sentences.ts";
import { languageOf } from "../platform/http/middleware/reader-language.ts";
import { Html, html } from "./html.ts";
import { DATE_LOCALES, formatsOf, type MINUTES, renderTime } from "./time.ts";

type MarkupValue = string | number | Html;

/** The sentences of a page's language, and its formats for moments, amounts and numbers. */
export interface Locale {
  language: Language;
  /** A sentence as text. */
  t: Translate;
  /** A sentence with markup, in the sentence itself or in its values. Values that are text are escaped. */
  markup: <Key extends SentenceKey>(key: Key, ...values: ValuesOf<Key, MarkupValue>) => Html;
  usd: Intl.NumberFormat;
  count: Intl.NumberFormat;
  /** The name of the zone of moments and days. */
  timeZone: string;
  /** A moment in the zone, to the second or to the minute. If the zone is not UTC, the time in UTC is added. */
  time(at: string | Date, precision?: typeof MINUTES): Html;
  /** The same without the date, for lists of one day. */
  timeOfDay(at: string | Date): Html;
  /** A moment as a wall clock in the zone shows it: `YYYY-MM-DD hh:mm:ss`. */
  wallClock(at: Date): string;
  /** A calendar day, `YYYY-MM-DD`: for a table (`day`), a sentence (`date`) or an axis (`tick`). */
  day(day: string, form?: "day" | "date" | "tick"): string;
  /** A calendar month, `YYYY-MM`. */
  month(month: string): string;
}

function markupIn(t: Translate): Locale["markup"] {
  const toMarkup = (value: MarkupValue) => (typeof value === "number" ? value : html`${value}`.markup);
  return (key, ...[values]) => {
    const given = Object.entries<MarkupValue>(values ?? {}).map(([name, value]) => [name, toMarkup(value)] as const);
    // TypeScript knows no type for each name of an object that is made from entries.
    return new Html(t(key, ...([Object.fromEntries(given)] as unknown as ValuesOf<typeof key>)));
  };
}

function makeLocale(language: Language, tag = DATE_LOCALES[language], timeZone = "UTC"): Locale {
  const numbers = tag === DATE_LOCALES.en ? "en-US" : tag;
  // A calendar day is the same day everywhere, so the zone does not matter.
  const calendar = { tag, timeZone: "UTC" };
  return {
    language,
    t: translateInto(language),
    markup: markupIn(translateInto(language)),
    usd: new Intl.NumberFormat(numbers, { style: "currency", currency: "USD" }),
    count: new Intl.NumberFormat(numbers),
    timeZone,
    time: (at, precision) => renderTime(at, precision, { tag, timeZone }),
    timeOfDay: (at) => renderTime(at, undefined, { tag, timeZone }, false),
    wallClock: (at) => formatsOf({ tag, timeZone }).wall.format(at),
    day: (day, form = "day") => formatsOf(calendar)[form].format(new Date(day)),
    month: (month) => formatsOf(calendar).month.format(new Date(`${month}-01`)),
  };
}

const LOCALES = new Map<Language, Locale>(LANGUAGES.map((language) => [language, makeLocale(language)]));

/** The locale of a language, with times in UTC. */
export function localeIn(language: Language): Locale {
  return LOCALES.get(language) as Locale;
}

/** The locale of English pages with times in a time zone. */
export const englishIn = (timeZone: string): Locale => makeLocale("en", DATE_LOCALES.en, timeZone);

/** The locale of pages for developers and operators. */
export const ENGLISH = localeIn("en");

/** The locale of the page that this response sends. */
export function localeOf(response: Response): Locale {
  return localeIn(languageOf(response));
}

/** The locale of the page that this response sends, with the formats of the reader's country, in a time zone. */
export function localeForReader(response: Response, timeZone: string): Locale {
  const language = languageOf(response);
  return makeLocale(language, response.locals.localeTag, timeZone);
}

/** The sentences of a page's scripts as JSON. If `part` is given, only those of this script. */
export function sentencesOfScripts(language: Language, part = ""): string {
  const ofScripts = Object.entries(sentencesOf(language)).filter(([key]) => key.startsWith(`script.${part}`));
  const json = JSON.stringify(Object.fromEntries(ofScripts.map(([key, text]) => [key.slice("script.".length), text])));
  // The escape prevents a text from closing the element that contains it.
  return json.replaceAll("<", "\\u003c");
}

/**
 * The sentences of a page's scripts, as data that browsers do not run. Null in English, because the scripts contain the
 * English sentences.
 */
export function renderScriptTexts({ language }: Locale, part = ""): Html | null {
  if (language === "en") return null;
  const json = sentencesOfScripts(language, part);
  return new Html(`<script type="application/json" id="script-texts">${json}</script>\n`);
}
