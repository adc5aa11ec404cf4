import { InvalidArgumentError, Option } from "commander";
import { type Field, withoutBlanks } from "../acts/fields.ts";
import { inEnglish, problem } from "../platform/api/problems.ts";
import { flag, type OptionOf } from "./options.ts";

const HOUR_MS = 3_600_000;
/** The meaning of a date without a time. */
const DATE_HELP = {
  start: "A day such as 2027-12-01 from its beginning, or a time: 2027-12-01T08:00Z",
  end: "A day such as 2027-12-31 to its end, or a time: 2027-12-31T18:00Z",
  rangeEnd: "A day such as 2027-12-31 to its end, or a time: 2027-12-31T18:00Z",
};

const isList = ({ kind }: Pick<Field, "kind">) => kind === "choices" || kind === "list";

/** The value that a command receives: undefined instead of null for an optional field. */
type Given<Value> = null extends Value ? Exclude<Value, null> | undefined : Value;

/** The option for a field. It is required if the field has no initial value. */
export function optionOf<Value>(field: Field<Value>): OptionOf<Given<Value>> {
  const { kind, label, values, initial } = field;
  const hint = kind === "time" ? DATE_HELP[field.use ?? "start"] : field.hint;
  const described = `${label.charAt(0).toLowerCase()}${label.slice(1)}${hint && `. ${hint}`}`.replace(/\.$/, "");
  if (kind === "flag") return flag(described) as OptionOf<Given<Value>>;
  const about = isList(field) ? `${described}; repeatable${values ? `: ${values.join(", ")}` : ""}` : described;
  return {
    build(name) {
      const [word = "value"] = /[a-z]+$/.exec(name) ?? [];
      const built = new Option(`${name} ${field.placeholder ?? `<${word}>`}`, about);
      if (kind === "choice") built.choices(values ?? []);
      else built.argParser((text: string, previous: unknown) => readTyped(field, text, previous));
      if (initial === undefined) return built.makeOptionMandatory();
      if (kind === "duration") return built.default(initial, `${Number(initial) / HOUR_MS}h`);
      return ["string", "number"].includes(typeof initial) ? built.default(initial) : built;
    },
  };
}

/** Reads the text of an option. An option for a list may be repeated. */
export function readTyped(field: Field, text: string, previous: unknown): unknown {
  const typed = withoutBlanks(field, text);
  if (typed === "") throw new InvalidArgumentError(`It ${inEnglish(problem("empty"))}.`);
  const { success, data, error } = field.typed.safeParse(field.kind === "choices" ? [text] : typed);
  if (!success) throw new InvalidArgumentError(`It ${inEnglish(error.issues[0]?.message ?? "is invalid")}.`);
  return isList(field) && Array.isArray(data)
    ? [...new Set([...(Array.isArray(previous) ? previous : []), ...data])]
    : data;
}
