import type { z } from "zod";
import { AppError } from "../domain/errors.ts";

/**
 * Parses input by a schema. Fields that the schema does not know are ignored.
 * @throws AppError `invalid_request` with a sentence that names the first wrong field.
 */
export function validate<Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue?.path.join(".");
  const sentence = issue?.message ?? "is not valid";
  throw new AppError("invalid_request", field ? `${field} ${sentence}.` : `${sentence}.`);
}
