import type { Language } from "../platform/api/sentences.ts";
import { type Html, html } from "./html.ts";

/** For each language, the locale whose date format pages use if the reader names no country. */
export const DATE_LOCALES: Record<Language, string> = {
  en: "en-GB",
  de: "de-DE",
  fr: "fr-FR",
  es: "es-ES",
  nl: "nl-NL",
};

const SECONDS = "medium";
/** The precision of a moment to the minute. */
export const MINUTES = "short";
export type Precision = typeof SECONDS | typeof MINUTES;

/** How a page formats moments: the reader's locale and a time zone. */
export interface TimeForm {
  tag: string;
  timeZone: string;
  /** Whether a moment's time in UTC is added. */
  withUtc?: boolean;
}

function makeFormats({ tag, timeZone }: TimeForm) {
  const format = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(tag, { timeZone, ...options });
  return {
    date: format({ dateStyle: "long" }),
    /** A day at an axis. */
    tick: format({ day: "numeric", month: "short" }),
    month: format({ year: "numeric", month: "long" }),
    short: format({ timeStyle: MINUTES }),
    medium: format({ timeStyle: SECONDS }),
    zone: format({ timeZoneName: "short" }),
    /** A moment as a wall clock shows it: ISO 8601, with a space instead of the T. */
    wall: new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" }),
  };
}

const UTC: TimeForm = { tag: DATE_LOCALES.en, timeZone: "UTC" };

/** Making formats takes longer than making a page. At most FORMS_MAX are kept, because readers choose the tags. */
const forms = new Map<string, ReturnType<typeof makeFormats>>();
const FORMS_MAX = 200;

/** The formats for a locale and a time zone. For an unknown tag, the language's default formats. */
export function formatsOf(form: TimeForm): ReturnType<typeof makeFormats> {
  const key = `${form.tag} ${form.timeZone}`;
  const known = forms.get(key);
  if (known !== undefined) return known;
  const made = makeFormats(form);
  if (forms.size === FORMS_MAX) forms.clear();
  forms.set(key, made);
  return made;
}

/** A moment in the zone, with the zone's name. Scripts read the exact time from the attribute `datetime`. */
export function renderTime(at: string | Date, precision: Precision = SECONDS, form = UTC, dated = true): Html {
  const moment = new Date(at);
  const formats = formatsOf(form);
  const zone = formats.zone.formatToParts(moment).find(({ type }) => type === "timeZoneName")?.value ?? "";
  const clock = `${formats[precision].format(moment)} ${zone}`;
  const shown = dated ? `${formats.date.format(moment)}, ${clock}` : clock;
  const time = html`<time datetime="${moment.toISOString()}">${shown}</time>`;
  return form.withUtc && form.timeZone !== UTC.timeZone ? html`${time} ${besideIt(moment, precision, form)}` : time;
}

/** The same moment in UTC. Includes the day if the zone of `form` has another day. */
function besideIt(moment: Date, precision: Precision, form: TimeForm): Html {
  const [own, utc] = [formatsOf(form), formatsOf({ ...form, timeZone: UTC.timeZone })];
  const day = utc.date.format(moment);
  const shown = `${day === own.date.format(moment) ? "" : `${day}, `}${utc[precision].format(moment)} UTC`;
  return html`<span class="local">(${shown})</span>`;
}

/** An end at this time of day or later counts as the end of that day. */
const DAY_ENDS_AT = "23:58";

/**
 * The end of a validity. `end` is the first invalid moment. Shows the last valid day if a day ends with it, otherwise
 * the minute. 17:59:59.999 and 18:00 look alike.
 */
export function renderEnd(end: Date, form = UTC): Html {
  const day = findLastDay(new Date(end.getTime() - 1), form);
  const untilMs = Math.floor((end.getTime() + 1_000) / 60_000) * 60_000;
  if (day === null) return renderTime(new Date(untilMs), MINUTES, form);
  const shown = formatsOf({ ...form, timeZone: UTC.timeZone }).date.format(new Date(day));
  return html`<time datetime="${end.toISOString()}">${shown}</time>`;
}

/**
 * The day that ends with this moment, or null. If an issuer gives a date without a time, the validity ends with that
 * day in UTC. Zones east of UTC show this date too, although the voucher is valid for some hours of their next day.
 */
function findLastDay(last: Date, form: TimeForm): string | null {
  const [own, utc] = [form, UTC].map((each) => formatsOf(each).wall.format(last).split(" ")) as [string[], string[]];
  const [[day = "", clock = ""], [utcDay = "", utcClock = ""]] = [own, utc];
  if (clock >= DAY_ENDS_AT) return day;
  return utcClock >= DAY_ENDS_AT && utcDay < day ? utcDay : null;
}
