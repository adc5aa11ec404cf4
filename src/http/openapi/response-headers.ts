import { z } from "zod";

/** On every response. */
export const REQUEST_ID = {
  "X-Request-Id": z.string().meta({
    description: "The request's id: the one you sent, if it is valid, or a new one. The service's log contains it.",
    header: { id: "X-Request-Id" },
  }),
};

/** On 429 and 503. */
export const RETRY_AFTER = {
  "Retry-After": z.string().meta({
    description: "Seconds to wait before you try again.",
    header: { id: "Retry-After" },
    override: { type: "integer", minimum: 1 },
  }),
};

/** On responses to requests that a limit counts. */
export const RATE_LIMIT = {
  "RateLimit-Policy": z
    .string()
    .optional()
    .meta({
      description:
        'The limit that counts this request: its name, the number of requests and the seconds, such as `"read";q=200;w=1`.',
      header: { id: "RateLimit-Policy" },
    }),
  RateLimit: z
    .string()
    .optional()
    .meta({
      description: 'The requests that remain, and the seconds until the limit resets, such as `"read";r=187;t=1`.',
      header: { id: "RateLimit" },
    }),
};

/** On 405. */
export const ALLOW = {
  Allow: z
    .string()
    .optional()
    .meta({ description: "With 405: the methods that the address accepts.", header: { id: "Allow" } }),
};

/** On a 401 of an endpoint for users. */
export const WWW_AUTHENTICATE = {
  "WWW-Authenticate": z.literal("Bearer").meta({
    description: "The required authentication scheme.",
    header: { id: "WWW-Authenticate" },
  }),
};
