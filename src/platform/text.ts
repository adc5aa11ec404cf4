/**
 * Maximum length of a text that is normalised, in bytes of UTF-8. For a long run of combining marks, the time to
 * normalise grows with the square of the length: a third of a millisecond at this length, 35 ms at the length of a
 * body. The limit allows twelve bytes for each of the 128 characters of a reference. Few characters need more when
 * decomposed.
 */
export const NORMALISED_MAX = 1_536;

/** Maximum number of bytes of one code point in UTF-8. */
const CODE_POINT_BYTES = 4;
/** Maximum number of bytes in UTF-8 of one UTF-16 unit. */
const UNIT_BYTES = 3;

/** Whether a text has more than `max` bytes of UTF-8. Counts the bytes only if `length` does not decide. */
export function isLongerThan(text: string, max: number): boolean {
  return text.length > max || (text.length * UNIT_BYTES > max && Buffer.byteLength(text) > max);
}

/** Whether a text has at most `max` code points. Counts bytes first, which is fast for any length. */
export function hasAtMost(text: string, max: number): boolean {
  return !isLongerThan(text, max * CODE_POINT_BYTES) && [...text].length <= max;
}

/**
 * Normalises a text (Unicode Standard Annex 15). All normalisation goes through this function. Returns null for a text
 * longer than {@link NORMALISED_MAX}. No stored text is that long.
 */
export function normaliseText(text: string, form: "NFC" | "NFKC" | "NFKD"): string | null {
  return isLongerThan(text, NORMALISED_MAX) ? null : text.normalize(form);
}

/** Whether a text shows nothing: it has only white space and characters without a form of their own. */
export function isBlank(text: string): boolean {
  return !/[^\p{White_Space}\p{Default_Ignorable_Code_Point}]/u.test(text);
}

/** A quoted cell of a CSV file. A leading apostrophe prevents spreadsheets from running a text as a formula. */
export const csvCell = (value: string | number | null): string =>
  `"${String(value ?? "")
    .replace(/^(?=[=+\-@\t\r])/, "'")
    .replaceAll('"', '""')}"`;
