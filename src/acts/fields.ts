import { z } from "zod";
import { isExactNetwork } from "../platform/addresses.ts";
import { EXAMPLE } from "../platform/api/example.ts";
import { filledTextUpTo, isErasedForm } from "../platform/api/fields.ts";
import { problem } from "../platform/api/problems.ts";
import { wholeNumber } from "../platform/http/whole-number.ts";
import { isBlank } from "../platform/text.ts";
import { readTime, type TimeUse } from "../platform/times.ts";
import { PICTURE_MAX, type Picture, readPicture } from "./picture.ts";

/**
 * One value that an act takes. Each interface reads it in its own format. All interfaces refuse an invalid value with
 * the same text, which follows the field's name: "must not be empty".
 */
export interface Field<Value = unknown> {
  /** The field's name for people. It is clear without context: "Price of the voucher". */
  label: string;
  /** Sentences that explain the field. */
  hint: string;
  kind: "text" | "time" | "duration" | "choice" | "choices" | "list" | "flag" | "reference" | "picture" | "json";
  /** Reads what a person types, after {@link withoutBlanks}: one text, or all chosen values of a field with choices. */
  typed: z.ZodType<Value>;
  /** Reads JSON, and describes it in the API reference. */
  json: z.ZodType<Value>;
  /** The placeholder for the value in a command's help. By default, the last word of the option. */
  placeholder?: string;
  /** The option of a command, if it differs from the field's name. */
  option?: string;
  /** Whether to keep spaces before and after the text that a person types. */
  verbatim?: boolean;
  /** The values to choose from. */
  values?: readonly string[];
  /** The default value. A field without a default is required. */
  initial?: Value;
  /** What an empty form contains. By default, the initial value. */
  suggested?: readonly string[];
  /** For a time: whether a time that has passed is refused. */
  future?: boolean;
  /** For a time: what a date without a time stands for. */
  use?: TimeUse;
  /** For choices: an option for each choice, with its description. Without this, one option takes the values. */
  flags?: Readonly<Record<string, string>>;
  /** Whether only commands have the field. */
  commandOnly?: boolean;
  /** `people`: only commands and forms have the field. `programs`: only JSON has it. Elsewhere its value is null. */
  onlyFor?: "people" | "programs";
  /** The name in JSON, if it differs from the field's name. */
  jsonName?: string;
  /** Whether a link to the form may supply the value. */
  fromLink?: boolean;
}

/** How the interfaces treat a kind of field. By default, they show the field's hint. */
interface Kind {
  /** How the option of a command takes a value. `list`: the option may be repeated. */
  option: {
    takes: "nothing" | "text" | "choice" | "list" | "file";
    hint?(field: Field): string;
    /** How `--help` shows the default value. */
    initial?(value: unknown): string;
  };
  /** The input of a form. */
  input: {
    shape: "line" | "box" | "boxes" | "select" | "products" | "file";
    /** The unit that the label shows in brackets. */
    unit?: string;
    isOptional?: true;
    hint?(field: Field): string;
    /** What an empty form contains. By default, the field's initial value. */
    initial?(field: Field): readonly string[];
    /** Reads the form's value. By default, in the same way as the field reads a typed value. */
    read?(field: Field): z.ZodType;
  };
  /** A property of a JSON body. */
  json: { hint?(field: Field): string };
}

const HOUR_MS = 3_600_000;
/** Maximum duration in a form: a year. Hours. */
const HOURS_MAX = 8_760;
const HOURS = z
  .string()
  .transform((value) => wholeNumber(value, 0, HOURS_MAX) ?? Number.NaN)
  .refine((value) => !Number.isNaN(value), `must be a whole number from 0 to ${HOURS_MAX}`);

/** Adds the time zone, because a form takes times in UTC without a zone. */
const addZone = (text: string) => text.replace(/^(\S+)[ T](\S+?)Z?$/, "$1T$2Z");

/** Chooses the hint of a time field: what a date without a time stands for, at a start or at an end. */
const byUse = (ofStarts: string, ofEnds: string) => ({
  hint: ({ use = "end" }: Field) => (use === "start" ? ofStarts : ofEnds),
});

const TEXT: Kind = { option: { takes: "text" }, input: { shape: "line" }, json: {} };

/** For each kind of field, how its value is given to a command, in a form, and in JSON. */
export const KINDS: Readonly<Record<Field["kind"], Kind>> = {
  text: TEXT,
  time: {
    option: {
      takes: "text",
      ...byUse(
        "A day such as 2027-12-01 from its beginning, or a time: 2027-12-01T08:00Z",
        "A day such as 2027-12-31 to its end, or a time: 2027-12-31T18:00Z",
      ),
    },
    input: {
      shape: "line",
      unit: "UTC",
      ...byUse(
        "From this day on: 2027-12-01. With a time: 2027-12-01 08:00.",
        "To the end of this day: 2027-12-31. With a time: 2027-12-31 18:00.",
      ),
      read: ({ typed }) =>
        z
          .string()
          .transform(addZone)
          .pipe(typed as z.ZodType<unknown, string>),
    },
    json: byUse("A date alone means the beginning of that day, UTC.", "A date alone means the end of that day, UTC."),
  },
  duration: {
    option: { takes: "text", initial: (value) => `${Number(value) / HOUR_MS}h` },
    input: {
      shape: "line",
      unit: "hours",
      initial: ({ initial }) => [String(Number(initial) / HOUR_MS)],
      read: () => HOURS,
    },
    json: {},
  },
  choice: { option: { takes: "choice" }, input: { shape: "select" }, json: {} },
  choices: {
    option: { takes: "list" },
    input: { shape: "boxes", initial: ({ suggested = [] }) => suggested },
    json: {},
  },
  list: { option: { takes: "list" }, input: { shape: "line", isOptional: true, initial: () => [] }, json: {} },
  flag: { option: { takes: "nothing" }, input: { shape: "box", initial: () => [] }, json: {} },
  reference: { option: { takes: "text" }, input: { shape: "products" }, json: {} },
  picture: {
    option: { takes: "file" },
    input: { shape: "file" },
    json: { hint: ({ hint }) => `${hint} The file's content in Base64.` },
  },
  json: TEXT,
};

export type Fields = Readonly<Record<string, Field>>;

/** The values of fields. */
export type Values<F extends Fields> = { [Name in keyof F]: F[Name] extends Field<infer Value> ? Value : never };

/** The values of fields. A value that could not be read is undefined. */
export type Readable<F extends Fields> = { [Name in keyof F]: Values<F>[Name] | undefined };

/** The optional properties that most fields accept. */
type More<Value> = Partial<
  Pick<
    Field<Value>,
    "hint" | "placeholder" | "option" | "initial" | "suggested" | "fromLink" | "commandOnly" | "onlyFor"
  >
>;

/** Zod's `error` option for a field in JSON: says that an absent field is required, and otherwise `message`. */
const orRequired = (message: string) => ({
  error: (issue: { input?: unknown }) => (issue.input === undefined ? problem("required") : message),
});

/** A line of text that is not blank. `max` counts code points. */
export function text(label: string, max: number, more: More<string> = {}): Field<string> {
  const field = line(label, max, more);
  const filled = field.json.refine((value) => value === "" || !isBlank(value), problem("empty"));
  return { ...field, typed: filled, json: filled };
}

/** A line of text, which may be blank. `max` counts code points. */
function line(label: string, max: number, more: More<string> = {}): Field<string> {
  const { hint = "" } = more;
  const singleLine = filledTextUpTo(max, hint || label).refine(
    (value) => !/\p{Cc}/u.test(value),
    problem("controlCharacters"),
  );
  return { kind: "text", label, hint, typed: singleLine, json: singleLine, ...more };
}

/** The text that a person types for a field, without spaces at its ends unless the field is verbatim. */
export function withoutBlanks({ verbatim }: Pick<Field, "verbatim">, text: string): string {
  return verbatim ? text : text.trim();
}

/**
 * A user, named by the subject of the user's tokens. RFC 7519 compares subjects without transformations, so no
 * interface may change a subject: `alice` and `alice ` are two users.
 */
export function subject(label: string, more: More<string> = {}): Field<string> {
  const { json, ...field } = line(label, 255, { placeholder: "<sub>", ...more });
  const read = json.refine((value) => !isErasedForm(value), problem("erased"));
  return { ...field, typed: read, json: read, verbatim: true };
}

/** A whole number. */
export function integer(label: string, min: number, max: number, more: More<number> = {}): Field<number> {
  const message = problem("notWhole", { min, max });
  return {
    kind: "text",
    label,
    hint: "",
    placeholder: "<n>",
    typed: z
      .string()
      .transform((value) => wholeNumber(value, min, max) ?? Number.NaN)
      .refine((value) => !Number.isNaN(value), message),
    json: z.int(orRequired(message)).min(min, message).max(max, message),
    ...more,
  };
}

/** US dollars, with at most two decimals. */
export function dollars(label: string, more: More<number> = {}): Field<number> {
  const message = problem("noDollars");
  const written = z.string().regex(/^\d{1,10}(\.\d{1,2})?$/, message);
  return {
    kind: "text",
    label: `${label} in US dollars`,
    hint: "",
    placeholder: "<dollars>",
    typed: written.transform(Number),
    json: z.number(orRequired(message)).refine((value) => written.safeParse(String(value)).success, message),
    ...more,
  };
}

/** A date, or a time with its zone. `use` decides what a date without a time stands for. */
export function time(label: string, use: TimeUse, more: More<Date> & Pick<Field, "future"> = {}): Field<Date> {
  const moment = z
    .string(orRequired(problem("noMoment")))
    .transform((value) => readTime(value, use))
    .refine((value) => value !== null, { error: problem("noMoment"), abort: true })
    .refine((value) => /^2\d\d\d$/.test(String(value.getUTCFullYear())), problem("noYear"));
  const json = moment.meta({ override: { type: "string" }, examples: ["2027-12-31", "2027-12-31T18:00:00Z"] });
  return { kind: "time", label, hint: "", use, placeholder: "<time>", typed: moment, json, ...more };
}

const UNIT_MS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A duration such as 30m, 24h or 7d, in milliseconds. */
export function duration(label: string, more: More<number> = {}): Field<number> {
  const typed = z
    .string(orRequired(problem("noDuration")))
    .regex(/^\d{1,6}[smhd]$/, problem("noDuration"))
    .transform((value) => Number(value.slice(0, -1)) * (UNIT_MS[value.slice(-1)] ?? 0));
  return { kind: "duration", label, hint: "", placeholder: "<duration>", typed, json: typed, ...more };
}

/** One of the given values. */
export function choice<const Value extends string>(
  label: string,
  values: readonly Value[],
  more: More<Value> = {},
): Field<Value> {
  const one = z.enum(
    values as readonly [Value, ...Value[]],
    orRequired(problem("notOneOf", { values: values.join(", ") })),
  );
  const read = one as unknown as z.ZodType<Value>;
  return { kind: "choice", label, hint: "", values, typed: read, json: read, ...more };
}

/** Several of the given values, each at most once. If there is no initial value, at least one value is required. */
export function choices<const Value extends string>(
  label: string,
  values: readonly Value[],
  more: More<Value[]> & Pick<Field, "flags"> = {},
): Field<Value[]> {
  const read = z
    .array(choice(label, values).typed, orRequired(problem("noChoice")))
    .min(more.initial === undefined ? 1 : 0, problem("noChoice"))
    .transform((given) => [...new Set(given)]);
  return { kind: "choices", label, hint: "", values, typed: read, json: read, ...more };
}

/** Yes or no. */
export function flag(label: string, more: Pick<Field, "option" | "commandOnly"> = {}): Field<boolean> {
  const json = z.boolean(orRequired(problem("notTrueOrFalse")));
  const typed = z.string().transform(Boolean);
  return { kind: "flag", label, hint: "", typed, json, initial: false, ...more };
}

/** IP addresses and networks. */
export function networks(label: string, more: More<string[]> = {}): Field<string[]> {
  const message = problem("noNetworks");
  const json = z.array(z.string().refine(isExactNetwork, message), orRequired(message));
  const typed = z
    .string()
    .transform((value) => value.split(/[\s,]+/).filter(Boolean))
    .refine((entries) => entries.every(isExactNetwork), message);
  return { kind: "list", label, hint: "", placeholder: "<cidr>", typed, json, initial: [], ...more };
}

/** A picture, in Base64. A command reads it from a file, and a form from the file that it sends. */
export function picture(label: string, more: More<Picture> = {}): Field<Picture> {
  const message = problem("noPicture", { kilobytes: PICTURE_MAX / 1024 });
  const read = z
    .string(orRequired(message))
    .transform(readPicture)
    .refine((found) => found !== null, message);
  const json = read.meta({ override: { type: "string", contentEncoding: "base64" }, examples: [EXAMPLE.picture] });
  return { kind: "picture", label, hint: "", placeholder: "<file>", typed: read, json, ...more };
}

/** A colour, or `none`. */
export function colour(label: string, more: More<string> = {}): Field<string> {
  const read = z
    .string(orRequired(problem("noColour")))
    .regex(/^(#[0-9a-f]{6}|none)$/i, problem("noColour"))
    .toLowerCase();
  const json = read.meta({ examples: [EXAMPLE.colour] });
  return { kind: "text", label, hint: "", placeholder: "<colour>", typed: read, json, ...more };
}

/** Any number of texts. `max` counts the code points of each. */
export function texts(label: string, max: number, more: More<string[]> = {}): Field<string[]> {
  const { typed, json } = text(label, max);
  const list = z.array(json, orRequired(problem("notText")));
  return { kind: "list", label, hint: "", typed: typed.transform((one) => [one]), json: list, initial: [], ...more };
}

/** A field that only programs give, in JSON. The schema decides what an absent value means. People's value is null. */
export function ofPrograms<Value>(label: string, json: z.ZodType<Value>, jsonName?: string): Field<Value | null> {
  const named = jsonName !== undefined && { jsonName };
  return {
    kind: "json",
    label,
    hint: "",
    placeholder: "",
    typed: z.null(),
    json,
    initial: null,
    onlyFor: "programs",
    ...named,
  };
}

/** The id of a product. The form offers the products of the brand to which the act's entity belongs. */
export function product(label: string, more: More<string> = {}): Field<string> {
  return { ...text(label, 128, { placeholder: "<id>", ...more }), kind: "reference" };
}

/** An optional field. Its value is null if it is left out. */
export function optional<Value>(field: Field<Value>): Field<Value | null> {
  return { ...field, typed: orWord(field, { "": null }), json: field.json.nullable(), initial: null };
}

/** A limit that people change. Without a value, the limit stays unchanged. The word `none` removes it. */
export function limit(field: Field<number>): Field<number | "none" | null> {
  const { json: _, ...shown } = optional(field);
  return {
    ...shown,
    typed: orWord(field, { "": null, none: "none" as const }),
    json: z.null(),
    onlyFor: "people",
  };
}

/** A field in which certain texts stand for values of another type. */
const orWord = <Value, Word>({ typed }: Field<Value>, words: Readonly<Record<string, Word>>) =>
  z.string().transform((value, issues): Value | Word => {
    if (Object.hasOwn(words, value)) return words[value] as Word;
    const parsed = typed.safeParse(value);
    if (parsed.success) return parsed.data;
    issues.addIssue(parsed.error.issues[0]?.message ?? "is invalid");
    return z.NEVER;
  });

/** The fields that are part of JSON bodies, by their JSON names. */
const jsonFields = (fields: Fields) =>
  Object.entries(fields).flatMap(([name, field]) =>
    field.commandOnly || field.onlyFor === "people" ? [] : [[field.jsonName ?? name, name, field] as const],
  );

/** The schema of a JSON body with these fields. It reports all invalid fields together. */
export function bodyOf(fields: Fields): z.ZodObject {
  const shape = jsonFields(fields).map(([jsonName, , field]) => {
    const { kind, json, initial, onlyFor, label, hint } = field;
    const description = `${label}. ${KINDS[kind].json.hint?.(field) ?? hint}`.trimEnd();
    const described = json.meta(kind === "json" ? { description, ...json.meta() } : { ...json.meta(), description });
    return [
      jsonName,
      initial === undefined || onlyFor === "programs" ? described : described.default(initial as never),
    ] as const;
  });
  return z.object(Object.fromEntries(shape));
}

/** The name of a field in a form. A duration is entered in hours, so its name differs. */
const nameInForm = (name: string, { kind }: Field) => (kind === "duration" ? `${name}Hours` : name);

/** The fields that are part of forms, by their names in forms. */
export function fieldsOfForm(fields: Fields): Fields {
  const shown = Object.entries(fields).filter(([, { commandOnly, onlyFor }]) => !commandOnly && onlyFor !== "programs");
  return Object.fromEntries(shown.map(([name, field]) => [nameInForm(name, field), field]));
}

/** The values of fields, from the values of a form. */
export function valuesOfForm<F extends Fields>(fields: F, entered: Readonly<Record<string, unknown>>): Values<F> {
  const values = Object.entries(fields).map(([name, field]) => {
    const key = nameInForm(name, field);
    const value = key in entered ? entered[key] : field.initial;
    return [name, field.kind === "duration" ? Number(value) * HOUR_MS : value];
  });
  return Object.fromEntries(values) as Values<F>;
}

/** The values of fields in a body that {@link bodyOf} has read. */
export function valuesIn<F extends Fields>(fields: F, body: Readonly<Record<string, unknown>>): Values<F> {
  const given = new Map(jsonFields(fields).map(([jsonName, name]) => [name, body[jsonName]]));
  const readOf = (name: string) => (given.has(name) ? given.get(name) : fields[name]?.initial);
  return Object.fromEntries(Object.keys(fields).map((name) => [name, readOf(name)])) as Values<F>;
}

/** The values in a body in which {@link bodyOf} has found `issues`. Invalid values are left out. */
export function readableIn<F extends Fields>(fields: F, body: unknown, { issues }: z.core.$ZodError): Readable<F> {
  const rest = structuredClone(body) as Record<string, unknown>;
  for (const { path } of issues) {
    const parent = path.slice(0, -1).reduce<unknown>((part, key) => Object(part)[key], rest);
    delete Object(parent)[path.at(-1) ?? ""];
  }
  const isWrong = (name: string) => issues.some(({ path }) => path.length === 1 && path[0] === name);
  const read = Object.entries(bodyOf(fields).shape).map(([name, field]) => [
    name,
    isWrong(name) ? undefined : z.safeParse(field, rest[name]).data,
  ]);
  return valuesIn(fields, Object.fromEntries(read));
}
