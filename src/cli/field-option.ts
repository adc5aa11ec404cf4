import { readFileSync } from "node:fs";
import { InvalidArgumentError, Option } from "commander";
import { type Field, KINDS, withoutBlanks } from "../acts/fields.ts";
import { inEnglish, problem } from "../platform/api/problems.ts";
import { flag, type OptionOf } from "./options.ts";

/** The value that a command receives: undefined instead of null for an optional field. */
type Given<Value> = null extends Value ? Exclude<Value, null> | undefined : Value;

/** The option for a field. It is required unless the field has an initial value. */
export function optionOf<Value>(field: Field<Value>): OptionOf<Given<Value>> {
  const { kind, label, values, initial } = field;
  const { takes, ...shown } = KINDS[kind].option;
  const hint = shown.hint?.(field) ?? field.hint;
  const described = `${label.charAt(0).toLowerCase()}${label.slice(1)}${hint && `. ${hint}`}`.replace(/\.$/, "");
  if (takes === "nothing") return flag(described) as OptionOf<Given<Value>>;
  const about = takes === "list" ? `${described}; repeatable${values ? `: ${values.join(", ")}` : ""}` : described;
  return {
    build(name) {
      const [word = "value"] = /[a-z]+$/.exec(name) ?? [];
      const built = new Option(`${name} ${field.placeholder ?? `<${word}>`}`, about);
      if (takes === "choice") built.choices(values ?? []);
      else
        built.argParser((text: string, previous: unknown) =>
          readTyped(field, takes === "file" ? readFile(text) : text, previous),
        );
      if (initial === undefined) return built.makeOptionMandatory();
      return ["string", "number"].includes(typeof initial) ? built.default(initial, shown.initial?.(initial)) : built;
    },
  };
}

/** The content of a file in Base64. */
function readFile(path: string): string {
  try {
    return readFileSync(path, "base64");
  } catch (error) {
    throw new InvalidArgumentError(`It cannot be read: ${(error as Error).message}.`);
  }
}

/** Reads the text of an option. An option for a list may be repeated. */
export function readTyped(field: Field, text: string, previous: unknown): unknown {
  const typed = withoutBlanks(field, text);
  if (typed === "") throw new InvalidArgumentError(`It ${inEnglish(problem("empty"))}.`);
  const { success, data, error } = field.typed.safeParse(field.kind === "choices" ? [text] : typed);
  if (!success) throw new InvalidArgumentError(`It ${inEnglish(error.issues[0]?.message ?? "is invalid")}.`);
  return KINDS[field.kind].option.takes === "list" && Array.isArray(data)
    ? [...new Set([...(Array.isArray(previous) ? previous : []), ...data])]
    : data;
}
