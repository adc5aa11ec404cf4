/**
 * Longest text that is normalised. Bytes of UTF-8. Normalising takes time by the square of a run of combining marks: a
 * third of a millisecond at this length, 35 ms at that of a body. Twelve bytes for each of the 128 characters of a
 * reference: few are longer when they are decomposed.
 */
export const NORMALISED_MAX = 1_536;

/** Largest number of bytes of one code point in UTF-8. */
const CODE_POINT_BYTES = 4;
/** Largest number of bytes in UTF-8 of one UTF-16 unit. */
const UNIT_BYTES = 3;

/** Whether a text has more bytes of UTF-8 than `max`. Counts them only if its UTF-16 units do not decide. */
export function isLongerThan(text: string, max: number): boolean {
  return text.length > max || (text.length * UNIT_BYTES > max && Buffer.byteLength(text) > max);
}

/** Whether a text has at most `max` code points. Bytes are counted first: that is fast for a text of any length. */
export function hasAtMost(text: string, max: number): boolean {
  return !isLongerThan(text, max * CODE_POINT_BYTES) && [...text].length <= max;
}

/**
 * Normalises a text (Unicode Standard Annex 15). The only place that does. Returns null for a text longer than
 * {@link NORMALISED_MAX}: no text that is stored or compared in a normalised form is that long.
 */
export function normaliseText(text: string, form: "NFC" | "NFKC" | "NFKD"): string | null {
  return isLongerThan(text, NORMALISED_MAX) ? null : text.normalize(form);
}

/** A cell of a CSV file in quotes, with an apostrophe before a text that a spreadsheet would run as a formula. */
export const csvCell = (value: string | number | null): string =>
  `"${String(value ?? "")
    .replace(/^(?=[=+\-@\t\r])/, "'")
    .replaceAll('"', '""')}"`;
