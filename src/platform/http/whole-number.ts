/** Parses decimal digits. Returns null for other text and for numbers outside the bounds, which are safe integers. */
export function wholeNumber(text: unknown, min: number, max: number): number | null {
  const number = typeof text === "string" && /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return number >= min && number <= max ? number : null;
}
