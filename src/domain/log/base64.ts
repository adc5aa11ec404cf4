/** Decodes standard base64 with padding, as the C2SP formats use it. Returns null for any other spelling of the same bytes. */
export function decodeBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? bytes : null;
}

/** Reads a decimal number up to 2^53 - 1. Returns null for any other text, also for a sign or a leading zero. */
export function parseDecimal(text: string): number | null {
  const number = /^(0|[1-9]\d{0,15})$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(number) ? number : null;
}
