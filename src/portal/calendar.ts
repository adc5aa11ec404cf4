import type { Locale } from "../pages/locale.ts";

const DAY_MS = 86_400_000;

/** Adds days to a calendar day: `YYYY-MM-DD`. Days have no time zone. */
export function addDays(day: string, days: number): string {
  return new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10);
}

/** Adds months to a month: `YYYY-MM`. */
export function addMonths(month: string, months: number): string {
  const start = new Date(`${month}-01`);
  start.setUTCMonth(start.getUTCMonth() + months);
  return start.toISOString().slice(0, 7);
}

/** The day that contains a moment, in the page's time zone. */
export function dayOf(at: Date, { wallClock }: Locale): string {
  return wallClock(at).slice(0, 10);
}

/** The month that contains a moment, in the page's time zone. */
export function monthOf(at: Date, locale: Locale): string {
  return dayOf(at, locale).slice(0, 7);
}

/** The first moment of a day in the page's time zone. May be after 00:00 if the clocks change at midnight. */
export function startOfDay(day: string, locale: Locale): Date {
  const midnight = Date.parse(day);
  const [before, after] = [midnight - DAY_MS, midnight + DAY_MS].map((near) => {
    const at = new Date(near);
    return new Date(midnight - (Date.parse(`${locale.wallClock(at)}Z`) - near));
  }) as [Date, Date];
  const [earlier, later] = before < after ? [before, after] : [after, before];
  return dayOf(earlier, locale) === day ? earlier : later;
}

/** The first moment of a month, in the page's time zone. */
export function startOfMonth(month: string, locale: Locale): Date {
  return startOfDay(`${month}-01`, locale);
}

/** Consecutive days from `first` to the day before `end`. */
export function daysBetween(first: string, end: string): string[] {
  const days: string[] = [];
  for (let day = first; day < end; day = addDays(day, 1)) days.push(day);
  return days;
}
