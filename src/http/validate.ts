import type { z } from "zod";
import { AppError } from "../contract/errors.ts";
import { ID_INPUT_MAX } from "../contract/fields.ts";

/** Parses input; ignores unknown fields. @throws AppError `invalid_request` naming the first invalid field. */
export function validate<Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue?.path.join(".");
  const sentence = issue?.message ?? "is not valid";
  throw new AppError("invalid_request", field ? `${field} ${sentence}.` : `${sentence}.`);
}

/** An id or link code from the path. An id that is too long or contains NUL becomes the empty string, which matches no row. */
export function pathId(value: unknown): string {
  const id = String(value);
  return id.length > ID_INPUT_MAX || id.includes("\0") ? "" : id;
}
