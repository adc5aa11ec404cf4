import { InvalidArgumentError } from "commander";
import { z } from "zod";

/** Describes `--force` of commands that create something with a name. */
export const FORCE_NAME = "do not ask when the name is already in use";

/** Option parser: a time in ISO 8601. A date alone means 00:00 UTC at the start of that day. */
export function isoDate(text: string): Date {
  if (!z.union([z.iso.datetime({ offset: true }), z.iso.date()]).safeParse(text).success) {
    throw new InvalidArgumentError("Give a time like 2027-12-31T23:59:59Z, or a date.");
  }
  return new Date(text);
}

/** Option parser: a whole number from `min` to `max`. */
export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) {
      throw new InvalidArgumentError(`Give a whole number from ${min} to ${max}.`);
    }
    return value;
  };
}

/** Option parser: US dollars with at most two decimals. */
export function dollars(text: string): number {
  if (!/^\d{1,10}(\.\d{1,2})?$/.test(text)) throw new InvalidArgumentError("Give dollars like 19.90.");
  return Number(text);
}

/** Option parser: one of some values. The option may be repeated. */
export function repeatable<T extends string>(
  what: string,
  allowed: readonly T[],
): (text: string, previous?: T[]) => T[] {
  return (text, previous = []) => {
    const known = allowed.find((candidate) => candidate === text);
    if (known === undefined) throw new InvalidArgumentError(`Unknown ${what}. Allowed: ${allowed.join(", ")}.`);
    return [...new Set([...previous, known])];
  };
}

/** Option parser: any text. The option may be repeated. */
export function collect(text: string, previous: string[] = []): string[] {
  return [...previous, text];
}

const UNIT_MS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Option parser: a duration like 30m, 24h or 7d, in milliseconds. */
export function duration(text: string): number {
  const [, count, unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const unitMs = UNIT_MS[unit];
  if (count === undefined || unitMs === undefined)
    throw new InvalidArgumentError("Give a duration like 30m, 24h or 7d.");
  return Number(count) * unitMs;
}

function oneLine(text: string, max: number): string {
  if (text === "" || text.length > max || /\p{Cc}/u.test(text)) {
    throw new InvalidArgumentError(`Give 1 to ${max} characters on one line.`);
  }
  return text;
}

/** Option parser: a name or label of at most 200 characters. Removes surrounding spaces. */
export function name(text: string): string {
  return oneLine(text.trim(), 200);
}

/** Option parser: the subject of a user's tokens, of at most 255 characters. */
export function subject(text: string): string {
  return oneLine(text, 255);
}
