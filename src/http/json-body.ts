import { isUtf8 } from "node:buffer";
import express, { type NextFunction, type Request, type RequestHandler, type Response } from "express";
import { AppError } from "../domain/errors.ts";

/** Largest body, after decompression. */
const BODY_MAX = "16kb";

const parse = express.json({
  limit: BODY_MAX,
  // Whatever its Content-Type says, a body is JSON or refused.
  type: () => true,
  verify: (_request, _response, body) => {
    if (!isUtf8(body)) throw new AppError("invalid_json", "The body must be JSON in UTF-8.");
  },
});

/**
 * Reads a JSON object from the body; no body at all counts as an empty object, so that what is missing gets named.
 * Refuses NUL and lone surrogates anywhere in it: neither Postgres nor canonical JSON has them.
 */
export const jsonBody: RequestHandler[] = [
  (request, response, next) => parse(request, response, next),
  (request: Request, _response: Response, next: NextFunction) => {
    request.body ??= {};
    if (typeof request.body !== "object" || Array.isArray(request.body)) {
      throw new AppError("invalid_json", "The body must be a JSON object.");
    }
    const field = findUnstorableText(request.body);
    if (field !== null) {
      throw new AppError("invalid_request", `${field} must not contain NUL characters or lone surrogates.`);
    }
    next();
  },
];

/** The top-level field in which a text is that cannot be stored, or null. Walks without recursion: nesting is the caller's. */
function findUnstorableText(body: Record<string, unknown>): string | null {
  for (const [field, value] of Object.entries(body)) {
    if (isUnstorable(field)) return "A field name";
    const open: unknown[] = [value];
    while (open.length > 0) {
      const next = open.pop();
      if (typeof next === "string" && isUnstorable(next)) return field;
      if (typeof next === "object" && next !== null) open.push(...Object.keys(next), ...Object.values(next));
    }
  }
  return null;
}

function isUnstorable(text: string): boolean {
  return text.includes("\0") || !text.isWellFormed();
}
