import express, { type NextFunction, type Request, type RequestHandler, type Response } from "express";
import { AppError, invalidField } from "../../api/errors.ts";
import { problemIn } from "../../api/problems.ts";
import type { Sentence } from "../../api/sentences.ts";

/** Maximum size of a body after decompression, unless it may contain a file. Bytes. */
const BODY_MAX = 16_384;

/** Ignores a byte order mark (RFC 8259, section 8.1). */
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Matches a charset other than UTF-8 in Content-Type. JSON has no charset parameter (RFC 8259, section 11). So the
 * parameter is used only to explain a refusal.
 */
const OTHER_CHARSET = /;\s*charset\s*=\s*"?(?!utf-?8\s*(?:"|;|$))[^\s;"]/i;

const NO_BYTES = new Uint8Array();

/** Parses bytes as JSON in UTF-8. For an empty body, returns an empty object. */
function parseObject(bytes: Uint8Array, contentType = ""): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(utf8.decode(bytes) || "{}");
  } catch {
    if (OTHER_CHARSET.test(contentType)) throw new AppError("unsupported_encoding");
    throw new AppError("invalid_json");
  }
  // `typeof` also returns "object" for an array.
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) throw new AppError("invalid_json");
  return parsed as Record<string, unknown>;
}

/**
 * Reads a JSON object from the body. A missing body counts as an empty object, so that the error names the missing
 * field. Text with NUL or lone surrogates is refused: Postgres cannot store NUL, and canonical JSON has no lone
 * surrogates.
 */
export const readJson = (bodyMax = BODY_MAX): RequestHandler[] => [
  (request: Request, response: Response, next: NextFunction) => {
    if (!request.complete) request.once("end", () => (response.locals.receivedAtMs = performance.now()));
    next();
  },
  // Regardless of the media type in Content-Type.
  express.raw({ limit: bodyMax, type: () => true }),
  (request: Request, _response: Response, next: NextFunction) => {
    request.body = parseObject(request.body ?? NO_BYTES, request.get("content-type"));
    const field = findUnstorableText(request.body);
    if (field !== null) throw invalidField(field, "unstorable");
    next();
  },
];

/**
 * A field name that an error may repeat. Longer names are not repeated, because a client may have sent a code, a ticket
 * or a key as a name.
 */
const PLAIN_NAME = /^[A-Za-z_]{1,15}$/;

/**
 * Finds a top-level field with text that cannot be stored. Returns the field's name, or words that stand for it. Null
 * if there is none. Not recursive, because the caller chooses how deeply the body is nested.
 */
function findUnstorableText(body: Record<string, unknown>): string | Sentence | null {
  for (const [field, value] of Object.entries(body)) {
    if (isUnstorable(field)) return problemIn("aFieldName");
    const unchecked: unknown[] = [value];
    while (unchecked.length > 0) {
      const next = unchecked.pop();
      if (typeof next === "string" && isUnstorable(next)) return PLAIN_NAME.test(field) ? field : problemIn("aField");
      if (typeof next === "object" && next !== null) unchecked.push(...Object.keys(next), ...Object.values(next));
    }
  }
  return null;
}

function isUnstorable(text: string): boolean {
  return text.includes("\0") || !text.isWellFormed();
}
