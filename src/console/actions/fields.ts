import { z } from "zod";
import { isNetwork } from "../../platform/addresses.ts";
import { wholeNumber } from "../../platform/http/whole-number.ts";
import { readTime, type TimeUse } from "../../platform/times.ts";
import type { Field } from "./action.ts";

const text = (max: number) =>
  z
    .string()
    .min(1, "must not be empty")
    .refine((value) => [...value].length <= max, `must be at most ${max} characters long`)
    .refine((value) => !/\p{Cc}/u.test(value), "must not contain control characters");

/** A time in UTC, which is entered without its zone. */
const moment = (use: TimeUse) =>
  z
    .string()
    .transform((value) => readTime(value.replace(/^(\S+)[ T](\S+?)Z?$/, "$1T$2Z"), use))
    .refine((value) => value !== null, {
      error: "must be a date such as 2027-12-31, or with a time: 2027-12-31 18:00",
      abort: true,
    })
    .refine((value) => /^2\d\d\d$/.test(String(value.getUTCFullYear())), "must be in the years 2000 to 2999");

/** Null when nothing is entered. */
function optional<Value>(schema: z.ZodType<Value>): z.ZodType<Value | null> {
  return z.string().transform((value, issues) => {
    if (value === "") return null;
    const parsed = schema.safeParse(value);
    if (parsed.success) return parsed.data;
    issues.addIssue(parsed.error.issues[0]?.message ?? "is invalid");
    return z.NEVER;
  });
}

/** A line of text. `max` counts code points. */
export const line = (label: string, max: number, hint = ""): Field<string> => ({ label, hint, schema: text(max) });

export const optionalLine = (label: string, max: number, hint = ""): Field<string | null> => ({
  label: `${label} (optional)`,
  hint,
  schema: optional(text(max)),
});

/** What must be typed to confirm what cannot be undone. */
export const confirmation = (label: string): Field<string> => ({ label, unrecorded: true, schema: text(1_000) });

/** How to enter a time. What a date alone means depends on its use. */
const TIME_HINT: Record<TimeUse, string> = {
  start: "From this day on: 2027-12-01. With a time: 2027-12-01 08:00.",
  end: "To the end of this day: 2027-12-31. With a time: 2027-12-31 18:00.",
  rangeEnd: "To the end of this day: 2027-12-31. With a time: 2027-12-31 18:00.",
};

/** A time in UTC. A text, because a browser's field for times sends nothing for a date alone. */
export const time = (label: string, use: TimeUse): Field<Date> => ({
  label: `${label} (UTC)`,
  hint: TIME_HINT[use],
  schema: moment(use),
});

export const optionalTime = (label: string, use: TimeUse): Field<Date | null> => ({
  label: `${label} (UTC, optional)`,
  hint: TIME_HINT[use],
  schema: optional(moment(use)),
});

export const integer = (label: string, min: number, max: number, initial = "", hint = ""): Field<number> => ({
  label,
  hint,
  initial: [initial],
  schema: z
    .string()
    .transform((value) => wholeNumber(value, min, max) ?? Number.NaN)
    .refine((value) => !Number.isNaN(value), `must be a whole number from ${min} to ${max}`),
});

export const dollars = (label: string): Field<number> => ({
  label: `${label} in US dollars`,
  schema: z
    .string()
    .regex(/^\d{1,10}(\.\d{1,2})?$/, "must be dollars like 19.90")
    .transform(Number),
});

/** Addresses and networks, separated by commas or blanks. */
export const networks = (label: string, hint: string): Field<string[]> => ({
  label: `${label} (optional)`,
  hint,
  schema: z
    .string()
    .transform((value) => value.split(/[\s,]+/).filter(Boolean))
    .refine((entries) => entries.every(isNetwork), "must be addresses or networks like 10.0.0.0/8"),
});

export const oneOf = <const Value extends string>(
  label: string,
  values: readonly Value[],
  hint = "",
): Field<Value> => ({
  label,
  hint,
  choices: values.map((value) => [value, value]),
  schema: z.enum(values as readonly [Value, ...Value[]], "must be one of the list") as unknown as z.ZodType<Value>,
});

/** Boxes, of which at least `min` must be ticked. */
export const someOf = <const Value extends string>(
  label: string,
  values: readonly Value[],
  { min = 0, hint = "", initial = [] as readonly string[] },
): Field<Value[]> => ({
  label,
  hint,
  initial,
  many: true,
  choices: values.map((value) => [value, value]),
  schema: z.array(oneOf(label, values).schema).min(min, "needs at least one choice"),
});

export const box = (label: string): Field<boolean> => ({
  label,
  type: "checkbox",
  schema: z.string().transform(Boolean),
});
