import { z } from "zod";
import { EXAMPLE, EXAMPLE_VERIFY_URL } from "./example.ts";

/** Largest value of a counting column. */
const INTEGER_MAX = 2_147_483_647;

/** A moment as every answer writes it. */
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

/** An amount of money. */
export function usd(description: string, example: number) {
  return z
    .number()
    .min(0)
    .meta({ description: `${description} US dollars, at most two decimals.`, examples: [example] });
}

/** A count, or a number of something counted. */
export function count(min: number, description: string, example: number) {
  return z
    .int()
    .min(min)
    .max(INTEGER_MAX)
    .meta({ description, examples: [example] });
}

/** The SHA-256 of something, in lower-case hex. */
export function sha256(description: string) {
  return z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .meta({ description });
}

export const voucherId = z.string().meta({
  description: "The voucher's id. Names it where its code must not be shown.",
  examples: [EXAMPLE.voucherId],
});

export const serial = count(1, "The voucher's number within its batch, starting at 1.", EXAMPLE.serial);

export const brand = z.string().meta({ description: "The brand's name.", examples: [EXAMPLE.brand] });

export const productName = z.string().meta({
  description: "What the voucher is for, as a customer reads it.",
  examples: [EXAMPLE.productName],
});

export const productKey = z.string().meta({
  description: "The product's key in the brand's catalogue; stable, for machines.",
  examples: [EXAMPLE.productKey],
});

export const benefitMonths = count(
  0,
  "Months that the benefit lasts. 0: the listing stated no term; it never means one month.",
  3,
);

export const usageUnitLabel = z
  .string()
  .nullable()
  .meta({
    description: "What one use is called, such as a visit; null when uses are not counted.",
    examples: ["visit"],
  });

export const verifyUrl = z.string().meta({
  format: "uri",
  description: "Where anyone can check the voucher's history without a key. May be printed on a receipt.",
  examples: [EXAMPLE_VERIFY_URL],
});
