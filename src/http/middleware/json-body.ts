import { isUtf8 } from "node:buffer";
import express, { type NextFunction, type Request, type RequestHandler, type Response } from "express";
import { AppError } from "../../contract/errors.ts";

/** Largest body, after decompression. Bytes. */
const BODY_MAX = 16_384;

const readJson = express.json({
  limit: BODY_MAX,
  // Every body is read as JSON; its Content-Type does not matter.
  type: () => true,
  verify: (_request, _response, body, charset) => refuseInvalidText(body, charset),
});

/** Refuses what Express would accept: other Unicode charsets, malformed UTF-8 and a byte order mark. */
function refuseInvalidText(body: Buffer, charset: string): void {
  if (charset !== "utf-8") throw new AppError("unsupported_encoding");
  if (!isUtf8(body) || body[0] === BYTE_ORDER_MARK) {
    throw new AppError("invalid_json", "The body must be JSON in UTF-8.");
  }
}

/** The first byte of U+FEFF in UTF-8. */
const BYTE_ORDER_MARK = 0xef;

/**
 * Reads a JSON object from the body. A missing body counts as an empty object, so that the error names the missing field.
 * NUL and lone surrogates are refused: Postgres stores no NUL, and canonical JSON has no lone surrogates.
 */
export const jsonBody: RequestHandler[] = [
  readJson,
  (request: Request, _response: Response, next: NextFunction) => {
    request.body ??= {};
    // Express accepts only objects and arrays.
    if (Array.isArray(request.body)) throw new AppError("invalid_json");
    const field = findUnstorableText(request.body);
    if (field !== null) {
      throw new AppError("invalid_request", `${field} must not contain NUL characters or lone surrogates.`);
    }
    next();
  },
];

/** A field name that an error may repeat: shorter than any code, ticket or key that a client sent by mistake in its place. */
const PLAIN_NAME = /^[A-Za-z_]{1,15}$/;

/** The top-level field that contains text that cannot be stored, or null. Without recursion: the caller controls the nesting. */
function findUnstorableText(body: Record<string, unknown>): string | null {
  for (const [field, value] of Object.entries(body)) {
    if (isUnstorable(field)) return "A field name";
    const open: unknown[] = [value];
    while (open.length > 0) {
      const next = open.pop();
      if (typeof next === "string" && isUnstorable(next)) return PLAIN_NAME.test(field) ? field : "A field";
      if (typeof next === "object" && next !== null) open.push(...Object.keys(next), ...Object.values(next));
    }
  }
  return null;
}

function isUnstorable(text: string): boolean {
  return text.includes("\0") || !text.isWellFormed();
}
