/** Parses a JSON object in its canonical form (RFC 8785). Returns null for any other text. */
export function parseCanonical(text: string): Record<string, unknown> | null {
  try {
    return text.startsWith("{") && canonicalize(JSON.parse(text)) === text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

/** @throws Error on a lone surrogate, which JSON texts in UTF-8 cannot have. */
function canonicalize(value: unknown): string {
  if (typeof value === "string" && !value.isWellFormed()) throw new Error("a lone surrogate");
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalize).join()}]`;
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([name, member]) => `${canonicalize(name)}:${canonicalize(member)}`).join()}}`;
}
