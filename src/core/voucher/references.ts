import { isLongerThan, NORMALISED_MAX, normaliseText } from "../../platform/text.ts";

/**
 * The form in which an `externalRef` is stored and compared: without format characters (Unicode category Cf), in NFC,
 * without white space at its ends. Texts that look the same are then the same reference, for example with a decomposed
 * `ä` or a zero-width space. A text that is too long for any reference is returned unchanged.
 */
export function normaliseReference(text: string): string {
  if (isLongerThan(text, NORMALISED_MAX)) return text;
  return (normaliseText(text.replace(/\p{Cf}/gu, ""), "NFC") ?? text).trim();
}

/**
 * The form in which releases up to 0.1.0 stored a reference. Null if it is the same. A redemption of such a release
 * keeps its reference, because the sealed event contains it. A read or a retry with the same text must still find that
 * redemption.
 */
export function earlierFormOf(text: string): string | null {
  const earlier = text.trim();
  return earlier === normaliseReference(text) ? null : earlier;
}

/**
 * The forms under which a redemption of this reference may be stored. The first form with a redemption counts. Empty if
 * Postgres cannot store the text, or if the text is too long for any reference.
 */
export function formsOf(text: string): string[] {
  if (isLongerThan(text, NORMALISED_MAX) || text.includes("\0") || !text.isWellFormed()) return [];
  const earlier = earlierFormOf(text);
  return [...(earlier === null ? [] : [earlier]), normaliseReference(text)];
}

/**
 * Whether every proxy passes this reference on unchanged in a path. Many decode a path or merge its slashes, but none
 * changes a query.
 */
export function survivesInPath(reference: string): boolean {
  return /^[\w.~-]+$/.test(reference) && isPathSegment(reference);
}

/** Whether a URL can end with this reference. Clients and proxies remove `.` and `..`, even encoded ones. */
export function isPathSegment(reference: string): boolean {
  return reference !== "." && reference !== "..";
}
