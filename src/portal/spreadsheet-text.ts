import { normaliseText } from "../platform/text.ts";

/** The languages whose names of months, days and truth values are known. */
const LANGUAGES = ["en", "de", "fr", "es", "nl"];

/** Lower case without accents, and plain forms of full-width characters. */
const simplify = (text: string) => (normaliseText(text, "NFKD") ?? text).replaceAll(/\p{M}/gu, "").toLowerCase();

const namesOf = (unit: "month" | "weekday", form: "long" | "short") =>
  LANGUAGES.flatMap((language) => {
    const { format } = new Intl.DateTimeFormat(language, { [unit]: form, timeZone: "UTC" });
    // Twelve months, and more than seven days in a row.
    const dates = Array.from({ length: 12 }, (_, index) =>
      unit === "month" ? new Date(Date.UTC(2026, index, 1)) : new Date(Date.UTC(2026, 0, 1 + index)),
    );
    return dates.map((date) => simplify(format(date)).replace(/\.$/, ""));
  });

const MONTHS = namesOf("month", "long");
/** Excel has an abbreviation of its own for March in German. */
const SHORT_MONTHS = new Set([...namesOf("month", "short"), "mrz"]);
/** Spreadsheets also know shortened names, such as Sept. */
const isMonth = (word: string) =>
  SHORT_MONTHS.has(word) || (word.length >= 3 && MONTHS.some((name) => name.startsWith(word)));
const DAYS = [...namesOf("weekday", "long"), ...namesOf("weekday", "short")].join("|");

/** What begins a formula. */
const FORMULA = /^[=+\-\u2212@]/;
const TRUTH_VALUE = /^(true|false|wahr|falsch|vrai|faux|verdadero|falso|waar|onwaar)$/;
/** Such as #REF! and #N/A, also in the other languages. */
const ERROR_VALUE = /^#[\u00a1\u00bf]?([\p{L}/0]+[!?]|n\/[abd]|nv)$/u;

/** Letters that belong to a number, a date or a time, each where it may stand. */
const LETTERS_OF_VALUES = [
  // A day of the week before a date, which has another word or number.
  new RegExp(`^(${DAYS})[.,]?\\s+(?=.*(\\d\\D+\\d|\\p{L}))`, "u"),
  // The exponent of a number.
  /(?<=\d[.,]?)e(?=[+-]?\d+\D*$)/,
  // The halves of a day.
  /(?<=\d\s*)[ap](\.\s?)?m\.?$|(?<=\d\s+)[ap]$/,
  // ISO 8601.
  /(?<=-\d\d)t(?=\d\d:)/,
  /(?<=:\d\d([.,]\d+)?)z$/,
  // Currencies.
  /^\(?[a-z]{0,3}(?=\p{Sc})|^(usd|eur|gbp|chf|fr\.)\s?(?=[-+.,]?\d)|(?<=\d[.,]?\s?)(usd|eur|gbp|chf|fr\.?)$/u,
];
/** The other characters of numbers, dates and times. */
const OF_VALUES = /^[\d\s\p{Sc}%.,:/'\u2019()+\-\u2212]*$/u;

/**
 * Whether a spreadsheet may run a text as a formula, or change it because it takes it for a number, an amount, a date,
 * a time or a constant. White space at the ends may get lost. Judges by what the text is made of and not by the forms
 * of one spreadsheet: a needless apostrophe can be seen, and a changed reference cannot.
 */
export function mayBeChanged(text: string): boolean {
  const simple = simplify(text);
  if (text.trim() !== text) return true;
  return FORMULA.test(simple) || TRUTH_VALUE.test(simple) || ERROR_VALUE.test(simple) || mayBeValue(simple);
}

function mayBeValue(text: string): boolean {
  const runs = text.match(/\d+/g);
  if (runs === null) return false;
  if (runs[0] === text) return /^0\d/.test(text) || text.length > 15;
  let hasMonth = false;
  const rest = LETTERS_OF_VALUES.reduce((left, letters) => left.replace(letters, " "), text).replaceAll(
    /\p{L}+/gu,
    (word) => {
      if (!isMonth(word)) return word;
      hasMonth = true;
      return " ";
    },
  );
  if (!OF_VALUES.test(rest)) return false;
  if (hasMonth) return runs.every(({ length }) => length <= 4);
  return !/^\d+(-\d+)+$/.test(text) || mayBeDate(runs);
}

/** Whether numbers between hyphens may be a day, a month and a year, or two of them. Other such texts are kept. */
function mayBeDate(runs: readonly string[]): boolean {
  const long = runs.filter(({ length }) => length > 2);
  return runs.length <= 3 && long.length <= 1 && long.every(({ length }) => length <= 4);
}
