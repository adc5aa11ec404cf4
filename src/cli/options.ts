import { InvalidArgumentError, Option } from "commander";
import { readTime, type TimeUse } from "../platform/times.ts";

/** How to read an option: a function that reads its text, or the list of all texts that it accepts. */
type Reader<Value> = ((text: string, previous: Value) => Value) | readonly Value[];

/** An option of a command, and the type of its value. The command gives the option its name. */
export interface OptionOf<Value> {
  build(name: string): Option;
  readonly type?: Value;
}

/** The values of a command's options. */
export type OptionValues<Options> = {
  [Name in keyof Options]: Options[Name] extends OptionOf<infer Value> ? Value : never;
};

/** An option with a value, such as `<id>`, and optionally with a default. `shown` describes the default in `--help`. */
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

/** A required option with a value. */
export function required(value: string, description: string): OptionOf<string>;
export function required<Value>(value: string, description: string, read: Reader<Value>): OptionOf<Value>;
export function required(value: string, description: string, read: Reader<unknown> = String): OptionOf<unknown> {
  return { build: (name) => option(value, description, read).build(name).makeOptionMandatory() };
}

/** An option without a value. */
export function flag(description: string, conflictsWith: string[] = []): OptionOf<true | undefined> {
  return { build: (name) => new Option(name, description).conflicts(conflictsWith) };
}

/** A sentence about each invalid option, by the option's name. */
export type OptionProblems = Map<string, string>;

/** Makes an option add its problem to `problems`. Without this, commander stops at the first problem. */
export function collectProblems(built: Option, problems: OptionProblems): Option {
  const { parseArg, mandatory, flags } = built;
  const name = built.attributeName();
  const missing = `Required option '${flags}' not specified.`;
  if (mandatory) problems.set(name, missing);
  if (parseArg === undefined) return built;
  return built.makeOptionMandatory(false).argParser((text, previous) => {
    try {
      if (text === "") throw new InvalidArgumentError("It must not be empty.");
      const value = parseArg(text, previous);
      if (problems.get(name) === missing) problems.delete(name);
      return value;
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error;
      problems.set(name, `Option '${flags}' argument '${text}' is invalid. ${error.message}`);
      return previous;
    }
  });
}

/** The required option of most commands: an organization. */
export const ORG = required("<id>", "the organization");
export const YES = flag("do not ask on a terminal");

/** Option parser: a date, or a time in ISO 8601. `use` decides what a date without a time stands for. */
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

/** Option parser: any text. The option may be repeated. */
export function collect(text: string, previous: string[] = []): string[] {
  return [...previous, text];
}
