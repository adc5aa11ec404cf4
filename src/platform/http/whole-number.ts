/**
 * The whole number that a text has in decimal digits; null if it has none within these bounds. Both are safe integers.
 */
export function wholeNumber(text: unknown, min: number, max: number): number | null {
  const number = typeof text === "string" && /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return number >= min && number <= max ? number : null;
}
