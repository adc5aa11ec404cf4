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

/** How a page formats moments: the locale of its reader, and a time zone. */
export interface TimeForm {
  tag: string;
  timeZone: string;
}

function makeFormats({ tag, timeZone }: TimeForm) {
  const format = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(tag, { timeZone, ...options });
  return {
    date: format({ dateStyle: "long" }),
    /** A day in a table. */
    day: format({ dateStyle: "medium" }),
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

/** Kept, because making formats takes longer than making a page. At most FORMS_MAX, because readers choose the tags. */
const forms = new Map<string, ReturnType<typeof makeFormats>>();
const FORMS_MAX = 200;

/**
 * The formats for a locale and a time zone. If the runtime does not know the reader's tag, uses the language's default
 * formats.
 */
export function formatsOf(form: TimeForm): ReturnType<typeof makeFormats> {
  const key = `${form.tag} ${form.timeZone}`;
  const known = forms.get(key);
  if (known !== undefined) return known;
  const made = makeFormats(form);
  if (forms.size === FORMS_MAX) forms.clear();
  forms.set(key, made);
  return made;
}

/**
 * A moment, to the second by default. If the zone is not UTC, the time in UTC is added. Scripts read the exact time
 * from the attribute `datetime`. With `dated` false, the date is left out.
 */
export function renderTime(at: string | Date, precision: Precision = SECONDS, form = UTC, dated = true): Html {
  const moment = new Date(at);
  const formats = formatsOf(form);
  const zone = formats.zone.formatToParts(moment).find(({ type }) => type === "timeZoneName")?.value ?? "";
  const clock = `${formats[precision].format(moment)} ${zone}`;
  const shown = dated ? `${formats.date.format(moment)}, ${clock}` : clock;
  const time = html`<time datetime="${moment.toISOString()}">${shown}</time>`;
  return form.timeZone === UTC.timeZone ? time : html`${time} ${besideIt(moment, precision, form)}`;
}

/** A moment in UTC. Includes the day if the form's zone has a different day at that moment. */
function besideIt(moment: Date, precision: Precision, form: TimeForm): Html {
  const [own, utc] = [formatsOf(form), formatsOf({ ...form, timeZone: UTC.timeZone })];
  const day = utc.day.format(moment);
  const shown = `${day === own.day.format(moment) ? "" : `${day}, `}${utc[precision].format(moment)} UTC`;
  return html`<span class="local">(${shown})</span>`;
}

/**
 * The end of a validity, in UTC. If it is within the last minutes of a day, only the day. Otherwise the day and the
 * time.
 */
export function renderEnd(end: Date): Html {
  const last = new Date(end.getTime() - 1);
  const { date, short } = formatsOf(UTC);
  if (short.format(last) < "23:58") return renderTime(end, MINUTES);
  return html`<time datetime="${end.toISOString()}">${date.format(last)}</time>`;
}
