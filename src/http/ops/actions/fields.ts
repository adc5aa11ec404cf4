import { z } from "zod";
import { isNetwork } from "../../../domain/api-keys.ts";
import type { Field } from "./action.ts";

const text = (max: number) =>
  z
    .string()
    .min(1, "must not be empty")
    .refine((value) => [...value].length <= max, `must be at most ${max} characters long`)
    .refine((value) => !/\p{Cc}/u.test(value), "must not contain control characters");

const moment = z
  .string()
  // Inputs for a date and a time send no seconds.
  .transform((value) =>
    value
      .replace(" ", "T")
      .replace(/T\d\d:\d\d$/, "$&:00")
      .concat("Z"),
  )
  .refine((value) => z.iso.datetime().safeParse(value).success, "must be a date and a time, such as 2027-12-31T23:59")
  .transform((value) => new Date(value))
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
  ...{ label: `${label} (optional)`, hint, schema: optional(text(max)) },
});

/** What must be typed to confirm what cannot be undone. */
export const confirmation = (label: string): Field<string> => ({ label, unrecorded: true, schema: text(1_000) });

/** A time in UTC. A browser without a field for times sends the text that was typed. */
export const time = (label: string): Field<Date> => ({
  label: `${label} (UTC)`,
  type: "datetime-local",
  schema: moment,
});

export const optionalTime = (label: string): Field<Date | null> => ({
  ...{ label: `${label} (UTC, optional)`, type: "datetime-local", schema: optional(moment) },
});

export const integer = (label: string, min: number, max: number, initial = "", hint = ""): Field<number> => ({
  ...{ label, hint, initial: [initial] },
  schema: z
    .string()
    .transform((value) => (/^\d{1,10}$/.test(value) ? Number(value) : -1))
    .refine((value) => value >= min && value <= max, `must be a whole number from ${min} to ${max}`),
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
  ...{ label: `${label} (optional)`, hint },
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
  ...{ label, hint, choices: values.map((value) => [value, value]) },
  schema: z.enum(values as readonly [Value, ...Value[]], "must be one of the list") as unknown as z.ZodType<Value>,
});

/** Boxes, of which at least `min` must be ticked. */
export const someOf = <const Value extends string>(
  label: string,
  values: readonly Value[],
  { min = 0, hint = "", initial = [] as readonly string[] },
): Field<Value[]> => ({
  ...{ label, hint, initial, many: true, choices: values.map((value) => [value, value]) },
  schema: z.array(oneOf(label, values).schema).min(min, "needs at least one choice"),
});

export const box = (label: string): Field<boolean> => ({
  label,
  type: "checkbox",
  schema: z.string().transform(Boolean),
});
