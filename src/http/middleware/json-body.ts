import { isUtf8 } from "node:buffer";
import express, { type NextFunction, type Request, type RequestHandler, type Response } from "express";
import { AppError } from "../../contract/errors.ts";

/** Longest body after decompression. Bytes. */
const BODY_MAX = 16_384;

const readJson = express.json({
  limit: BODY_MAX,
  // The media type in Content-Type is ignored: every body is parsed as JSON. `verify` checks the charset.
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

/** The first byte of a byte order mark in UTF-8. No JSON object or array starts with this byte, so one byte is enough to compare. */
const BYTE_ORDER_MARK = 0xef;

/**
 * Reads a JSON object from the body. A missing body counts as an empty object, so that the error names the missing field.
 * NUL and lone surrogates are refused: Postgres stores no NUL, and canonical JSON has no lone surrogates.
 */
export const jsonBody: RequestHandler[] = [
  readJson,
  (request: Request, _response: Response, next: NextFunction) => {
    request.body ??= {};
    // By default, `express.json` accepts only objects and arrays.
    if (Array.isArray(request.body)) throw new AppError("invalid_json");
    const field = findUnstorableText(request.body);
    if (field !== null) {
      throw new AppError("invalid_request", `${field} must not contain NUL characters or lone surrogates.`);
    }
    next();
  },
];

/** A field name that an error may repeat. Longer names are not repeated, because a client may have sent a code, ticket or key as a name. */
const PLAIN_NAME = /^[A-Za-z_]{1,15}$/;

/** Returns words for the top-level field with text that cannot be stored, or null. Not recursive, because the caller chooses how deep the body is nested. */
function findUnstorableText(body: Record<string, unknown>): string | null {
  for (const [field, value] of Object.entries(body)) {
    if (isUnstorable(field)) return "A field name";
    const unchecked: unknown[] = [value];
    while (unchecked.length > 0) {
      const next = unchecked.pop();
      if (typeof next === "string" && isUnstorable(next)) return PLAIN_NAME.test(field) ? field : "A field";
      if (typeof next === "object" && next !== null) unchecked.push(...Object.keys(next), ...Object.values(next));
    }
  }
  return null;
}

function isUnstorable(text: string): boolean {
  return text.includes("\0") || !text.isWellFormed();
}
