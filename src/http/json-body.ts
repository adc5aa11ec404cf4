import { isUtf8 } from "node:buffer";
import express, { type NextFunction, type Request, type RequestHandler, type Response } from "express";
import { AppError } from "../domain/errors.ts";

/** Largest body, after decompression. Bytes. */
const BODY_MAX = 16_384;

const parseAny = express.json({
  limit: BODY_MAX,
  // Whatever its Content-Type says, a body is JSON or refused.
  type: () => true,
  verify: (_request, _response, body) => refuseOtherText(body),
});

function refuseOtherText(body: Buffer): void {
  if (!isUtf8(body)) throw new AppError("invalid_json", "The body must be JSON in UTF-8.");
}

/** How nearly every client describes what it sends; the last is curl's, unasked. */
const PLAIN_TYPES = new Set([
  undefined,
  "application/json",
  "application/json; charset=utf-8",
  "application/json;charset=utf-8",
  "application/x-www-form-urlencoded",
]);

/** Whether a body says how long it is and needs no decoding. Reading such a one by hand saves a tenth of what a request costs. */
function isPlain({ headers }: Request): boolean {
  const length = Number(headers["content-length"]);
  if (!(length > 0 && length <= BODY_MAX) || headers["content-encoding"] !== undefined) return false;
  return PLAIN_TYPES.has(headers["content-type"]?.toLowerCase());
}

function parsePlain(request: Request, next: NextFunction): void {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    try {
      const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
      refuseOtherText(body);
      request.body = parseJson(body.toString());
    } catch (error) {
      return next(error);
    }
    next();
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new AppError("invalid_json", "The body must be a JSON object.", { cause: error });
  }
}

/**
 * Reads a JSON object from the body; no body at all counts as an empty object, so that what is missing gets named.
 * Refuses NUL and lone surrogates anywhere in it: neither Postgres nor canonical JSON has them.
 */
export const jsonBody: RequestHandler[] = [
  (request, response, next) => (isPlain(request) ? parsePlain(request, next) : parseAny(request, response, next)),
  (request: Request, _response: Response, next: NextFunction) => {
    if (request.body === undefined) request.body = {};
    if (request.body === null || typeof request.body !== "object" || Array.isArray(request.body)) {
      throw new AppError("invalid_json", "The body must be a JSON object.");
    }
    const field = findUnstorableText(request.body);
    if (field !== null) {
      throw new AppError("invalid_request", `${field} must not contain NUL characters or lone surrogates.`);
    }
    next();
  },
];

/** A name that may be told back: a shorter word than any code, ticket or key that somebody put in its place. */
const PLAIN_NAME = /^[A-Za-z_]{1,15}$/;

/** The top-level field in which a text is that cannot be stored, or null. Walks without recursion: nesting is the caller's. */
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
