import { z } from "zod";

/** Describes a header once, for all responses that have it. */
export function header<Schema extends z.ZodType>(id: string, schema: Schema, description: string, override = {}) {
  return { [id]: schema.meta({ description, header: { id }, override }) };
}

const text = z.string();

/** The header of every response. */
export const REQUEST_ID = header(
  "X-Request-Id",
  text,
  "The request's id: the one you sent, if it is valid, or a new one. The service's log contains it.",
);

/** The header of responses 429 and 503. */
export const RETRY_AFTER = header("Retry-After", text, "Seconds to wait before you try again.", {
  type: "integer",
  minimum: 1,
});

/** The headers of responses to requests that a limit counts. */
export const RATE_LIMIT = {
  ...header(
    "RateLimit-Policy",
    text.optional(),
    'The limit that counts this request: its name, the number of requests and the seconds, such as `"read";q=200;w=1`.',
  ),
  ...header(
    "RateLimit",
    text.optional(),
    'The requests that remain, and the seconds until the limit resets, such as `"read";r=187;t=1`.',
  ),
};

/** The header of responses 405. */
export const ALLOW = header("Allow", text.optional(), "With 405: the methods that the address accepts.");

/** The header of responses 401 of endpoints for users. */
export const WWW_AUTHENTICATE = header("WWW-Authenticate", z.literal("Bearer"), "The required authentication scheme.");
