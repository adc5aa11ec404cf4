import { type ParseArgsOptionsConfig, parseArgs } from "node:util";

/**
 * Reads the options of a program, which `read` checks. Prints the help for `--help`. For wrong arguments, prints the
 * problem and the help, and ends the process with status 2.
 */
export function readArguments<const Options extends ParseArgsOptionsConfig, Given>(
  options: Options,
  help: string,
  read: (values: ReturnType<typeof parseArgs<{ options: Options }>>["values"]) => Given,
): Given {
  try {
    const { values } = parseArgs({ options: { ...options, help: { type: "boolean", short: "h" } } });
    if (!("help" in values)) return read(values as Parameters<typeof read>[0]);
    console.log(help);
    process.exit(0);
  } catch (error) {
    console.error(`${(error as Error).message.replace(/\. .*$/s, ".")}\n\n${help}`);
    process.exit(2);
  }
}

/** Reads a whole number from `min` to `max`. @throws Error with a sentence for the user. */
export function readNumber(name: string, text: string, min: number, max: number): number {
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new Error(`--${name} must be a number from ${min} to ${max}.`);
}
