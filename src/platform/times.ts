const DAY_MS = 86_400_000;

/** The moment that a date without a time stands for, in milliseconds after the start of the day in UTC. */
const DATE_MEANS_MS = {
  /** The first moment of the day. */
  start: 0,
  /** For an end of validity: the last moment of the day. */
  end: DAY_MS - 1,
  /** For the exclusive end of a range: the first moment of the next day. */
  rangeEnd: DAY_MS,
};

/** What a time is for. This decides which moment a date without a time of day stands for. */
export type TimeUse = keyof typeof DATE_MEANS_MS;

const TIME = /^(\d{4}-\d\d-\d\d)(T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z|[+-]\d\d:[0-5]\d))?$/;

/** Reads a date, or a date and a time with its zone (ISO 8601). Returns null for all other text. */
export function readTime(text: string, use: TimeUse): Date | null {
  const [, date = "", time] = TIME.exec(text) ?? [];
  const day = new Date(`${date}T00:00:00Z`);
  // Refuses February 30, which JavaScript reads as a day in March.
  if (Number.isNaN(day.getTime()) || !day.toISOString().startsWith(date)) return null;
  const moment = time === undefined ? new Date(day.getTime() + DATE_MEANS_MS[use]) : new Date(text);
  return Number.isNaN(moment.getTime()) ? null : moment;
}
