import express, { type NextFunction, type Request, type RequestHandler, type Response } from "express";
import { AppError, invalidField } from "../../api/errors.ts";
import { problemIn } from "../../api/problems.ts";
import type { Sentence } from "../../api/sentences.ts";

/** Maximum size of a body after decompression, unless it may contain a file. Bytes. */
const BODY_MAX = 16_384;

/** Ignores a byte order mark (RFC 8259, section 8.1). */
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Matches a charset other than UTF-8 in Content-Type. JSON has no charset parameter (RFC 8259, section 11), so the
 * charset only explains a refusal.
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
  // Excludes arrays, for which `typeof` returns "object" too.
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) throw new AppError("invalid_json");
  return parsed as Record<string, unknown>;
}

/**
 * Reads a JSON object from the body. A missing body counts as an empty object, so that the error names the missing
 * field. Refuses text with NUL, which Postgres cannot store, and with lone surrogates, which canonical JSON cannot
 * contain.
 */
export const readJson = (bodyMax = BODY_MAX): RequestHandler[] => [
  (request: Request, response: Response, next: NextFunction) => {
    if (!request.complete) request.once("end", () => (response.locals.receivedAtMs = performance.now()));
    next();
  },
  // Reads the body regardless of its Content-Type.
  express.raw({ limit: bodyMax, type: () => true }),
  (request: Request, _response: Response, next: NextFunction) => {
    request.body = parseObject(request.body ?? NO_BYTES, request.get("content-type"));
    const field = findUnstorableText(request.body);
    if (field !== null) throw invalidField(field, "unstorable");
    next();
  },
];

/**
 * A field name that an error may repeat. A longer name is not repeated, because a client may have sent a code, a ticket
 * or a key as the name.
 */
const PLAIN_NAME = /^[A-Za-z_]{1,15}$/;

/**
 * Finds a top-level field with text that cannot be stored. Returns its name, or words in place of a name that must not
 * be shown. Null if there is none. Uses no recursion, because the caller chooses how deeply the body is nested.
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
