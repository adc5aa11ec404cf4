import { z } from "zod";
import { hasAtMost } from "../text.ts";
import { EXAMPLE, EXAMPLE_VERIFY_URL } from "./example.ts";
import { problem } from "./problems.ts";

/** Largest value of a Postgres `integer`. */
export const INTEGER_MAX = 2_147_483_647;

/** A request or a response with its name in the API reference. */
export function named<Shape extends z.ZodRawShape>(id: string, shape: Shape) {
  return z.object(shape).meta({ id });
}

/** Text in a response, or in a path. */
export function text(description: string, example?: string) {
  return z.string().meta({ description, ...(example !== undefined && { examples: [example] }) });
}

/** A boolean in a response. */
export function flag(description: string) {
  return z.boolean().meta({ description });
}

/** A time in a response. */
export function timestamp(description: string, example: string) {
  return z
    .string()
    .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    .meta({
      format: "date-time",
      description: `${description} ISO 8601 in UTC, with milliseconds.`,
      examples: [example],
    });
}

/** An amount of money in a response. */
export function usd(description: string, example: number) {
  return z
    .number()
    .min(0)
    .meta({ description: `${description} US dollars, at most two decimals.`, examples: [example] });
}

/** A count or an ordinal in a response. Maximum {@link INTEGER_MAX}. */
export function count(min: number, description: string, example: number) {
  return z
    .int()
    .min(min)
    .max(INTEGER_MAX)
    .meta({ description, examples: [example] });
}

/** A lower-case hex SHA-256 in a response. */
export function sha256(description: string) {
  return z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .meta({ description });
}

export const voucherId = text("The voucher's id. Identifies it where its code must not be shown.", EXAMPLE.voucherId);

export const serial = count(1, "The voucher's number within its batch, starting at 1.", EXAMPLE.serial);

export const productId = text("The product's id.", EXAMPLE.productId);

export const redeemCode = text("The code to give to the customer, who uses it to get the benefit.", EXAMPLE.redeemCode);

export const brand = text("The brand's name.", EXAMPLE.brand);

export const brandColour = text(
  "The colour of the brand's pages. Null for the service's own.",
  EXAMPLE.colour,
).nullable();

export const brandLogo = text(
  "The name of the brand's logo, which is at `/logos/{logo}`. Null if it has none.",
  EXAMPLE.logo,
).nullable();

export const productName = text("The product's name, as shown to customers.", EXAMPLE.productName);

export const productKey = text(
  "The product's key in the brand's catalog. Stable, so programs can rely on it.",
  EXAMPLE.productKey,
);

export const benefitMonths = count(
  0,
  "Duration of the benefit in months. 0 means that the product states no duration.",
  3,
);

export const usageUnitLabel = text(
  "The unit in which uses are counted, such as `visit`. Null when uses are not counted.",
  "visit",
).nullable();

export const verifyUrl = z.string().meta({
  format: "uri",
  description: "Where anyone can verify the voucher's history without a key. May be printed on a receipt.",
  examples: [EXAMPLE_VERIFY_URL],
});

/** Required text in a request. */
export const input = z.string({
  error: (issue) => (issue.input === undefined ? problem("required") : problem("notText")),
});

/**
 * Text in a request. `max` counts Unicode code points, like `maxLength` of JSON Schema. A longer text is refused before
 * any other rule runs.
 */
export function textUpTo(max: number, description: string, ...examples: string[]) {
  return input
    .refine((value) => hasAtMost(value, max), { error: problem("tooLong", { max: max }), abort: true })
    .meta({ maxLength: max, description, ...(examples.length > 0 && { examples }) });
}

/** Text in a request that must not be empty. */
export function filledTextUpTo(max: number, description: string, ...examples: string[]) {
  const field = textUpTo(max, description, ...examples);
  return field.min(1, problem("empty")).meta(field.meta() ?? {});
}

/** A whole number in a query string. */
export function queryInteger(min: number, max: number, fallback: number, description: string) {
  const notWhole = problem("notWhole", { min, max });
  return z
    .string({ error: notWhole })
    .regex(/^\d{1,10}$/, notWhole)
    .transform(Number)
    .refine((value) => value >= min && value <= max, notWhole)
    .default(fallback)
    .meta({
      description,
      // The API reference must show an integer, although the schema's input is a string.
      override: { type: "integer", pattern: undefined, minimum: min, maximum: max, default: fallback },
    });
}

const ISO_TIME = z.iso.datetime({ offset: true });

/** An optional time in a query string. Only years from 2000 to 2999 are accepted, to detect typing errors. */
export function queryTime(description: string, example: string) {
  const noTime = problem("noTime", { example: example.replace(/\+.*/, "Z") });
  return z
    .string({ error: problem("notOneValue") })
    .refine((value) => !/\d \d\d:\d\d$/.test(value), {
      error: problem("blankInTime"),
      abort: true,
    })
    .refine((value) => ISO_TIME.safeParse(value).success && !/\.\d{4}/.test(value), noTime)
    .transform((value) => new Date(value))
    .refine((time) => time.getUTCFullYear() >= 2_000 && time.getUTCFullYear() < 3_000, problem("noYear"))
    .optional()
    .meta({
      description: `${description} ISO 8601 with a time zone; encode a plus sign as %2B.`,
      examples: [example],
      // The API reference must show the text in the query, although the schema returns a Date.
      override: { type: "string", format: "date-time" },
    });
}

/** Maximum accepted length of a cursor. A valid cursor has fewer than 150 characters. */
const CURSOR_INPUT_MAX = 512;

/** The cursor of a list in a query string. */
export function queryCursor(description: string) {
  return z
    .string({ error: problem("notOneValue") })
    .max(CURSOR_INPUT_MAX, problem("noCursor"))
    .optional()
    .meta({ description });
}

export const ID_INPUT_MAX = 128;

/** Whether this is a text that an erasure puts in place of another text. Callers must not send such a text. */
export function isErasedForm(text: string): boolean {
  return text.startsWith("erased:");
}

/**
 * Copies only the schema's fields, in the schema's order. Uses a loop, because `Object.fromEntries` would take 2 µs
 * more per response.
 */
export function pickFields<Shape extends z.ZodRawShape>(
  { shape }: z.ZodObject<Shape>,
  values: z.output<z.ZodObject<Shape>>,
): z.output<z.ZodObject<Shape>> {
  const from = values as Record<string, unknown>;
  const picked: Record<string, unknown> = {};
  for (const field in shape) picked[field] = from[field];
  return picked as typeof values;
}

/** An example of a whole body: the given values, and for each other field its own example if it has one. */
export function sampleOf<Shape extends z.ZodRawShape>(
  { shape }: z.ZodObject<Shape>,
  given: Partial<z.output<z.ZodObject<Shape>>> = {},
): z.output<z.ZodObject<Shape>> {
  const sample: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(shape)) {
    const schema = field as z.ZodType;
    const described = schema.meta() ?? (schema instanceof z.ZodNullable ? (schema.unwrap() as z.ZodType).meta() : {});
    const value = name in given ? given[name as keyof typeof given] : described?.examples?.[0];
    if (value !== undefined) sample[name] = value;
  }
  return sample as z.output<z.ZodObject<Shape>>;
}

/** The field that marks every response about a sandbox organization. */
export const sandbox = z
  .literal(true)
  .optional()
  .meta({
    description: "Present only for a sandbox organization: its vouchers are for tests and have no value.",
    // Removes `const`, because client generators would take the object for one fixed value, in which all optional
    // fields are present.
    override: ({ jsonSchema }) => delete jsonSchema.const,
  });

/** The field `sandbox` of a response. Empty for a live organization. */
export function markSandbox(isSandbox: boolean): { sandbox?: true } {
  return isSandbox ? { sandbox: true } : {};
}
