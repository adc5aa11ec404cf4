import { InvalidArgumentError, Option } from "commander";
import { isErasedForm } from "../platform/api/fields.ts";
import { readTime, type TimeUse } from "../platform/times.ts";

/** Reads the text of an option, or names every text that it may have. */
type Reader<Value> = ((text: string, previous: Value) => Value) | readonly Value[];

/** An option of a command, and the type of its value. The command names it. */
export interface OptionOf<Value> {
  build(name: string): Option;
  readonly type?: Value;
}

/** The values of a command's options. */
export type Values<Options> = { [Name in keyof Options]: Options[Name] extends OptionOf<infer Value> ? Value : never };

/**
 * An option with a value, such as `<id>`, which has a default if one is given. `shown` describes the default in
 * `--help`.
 */
export function option(value: string, description: string): OptionOf<string | undefined>;
export function option<Value>(value: string, description: string, read: Reader<Value>): OptionOf<Value | undefined>;
export function option<Value>(
  value: string,
  description: string,
  read: Reader<Value>,
  byDefault: Value,
  shown?: string,
): OptionOf<Value>;
export function option(
  value: string,
  description: string,
  read: Reader<unknown> = String,
  byDefault?: unknown,
  shown?: string,
): OptionOf<unknown> {
  return {
    build(name) {
      const built = new Option(`${name} ${value}`, description).default(byDefault, shown);
      return typeof read === "function" ? built.argParser(read) : built.choices(read as readonly string[]);
    },
  };
}

/** An option with a value, without which the command is refused. */
export function required(value: string, description: string): OptionOf<string>;
export function required<Value>(value: string, description: string, read: Reader<Value>): OptionOf<Value>;
export function required(value: string, description: string, read: Reader<unknown> = String): OptionOf<unknown> {
  return { build: (name) => option(value, description, read).build(name).makeOptionMandatory() };
}

/** An option without a value. */
export function flag(description: string, conflictsWith: string[] = []): OptionOf<true | undefined> {
  return { build: (name) => new Option(name, description).conflicts(conflictsWith) };
}

/** The organization of most commands. */
export const ORG = required("<id>", "the organization");
export const YES = flag("do not ask on a terminal");

/** Option parser: a date, or a time in ISO 8601. Its use decides what a date alone means. */
export function time(use: TimeUse): (text: string) => Date {
  return (text) => {
    const found = readTime(text, use);
    if (found !== null) return found;
    throw new InvalidArgumentError("Give a date like 2027-12-31, or a time with its zone like 2027-12-31T18:00:00Z.");
  };
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
  if (isErasedForm(text)) throw new InvalidArgumentError("A user's id does not begin with erased:.");
  return oneLine(text, 255);
}
