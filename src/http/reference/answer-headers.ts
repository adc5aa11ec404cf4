import { z } from "zod";

/** On every answer. */
export const REQUEST_ID = {
  "X-Request-Id": z.string().meta({
    description: "The request's id: yours if you sent a sane one, else a new one. It is in the service's log, too.",
    header: { id: "X-Request-Id" },
  }),
};

/** On answers that tell when to come back. */
export const RETRY_AFTER = {
  "Retry-After": z.string().meta({
    description: "Seconds after which trying again makes sense.",
    header: { id: "Retry-After" },
    override: { type: "integer", minimum: 1 },
  }),
};

/** On the answers of addresses whose callers are limited, where a limit is on and was asked. */
export const RATE_LIMIT = {
  "RateLimit-Policy": z
    .string()
    .optional()
    .meta({
      description: 'The limit that this call counts in: its name, calls and seconds, such as `"read";q=200;w=1`.',
      header: { id: "RateLimit-Policy" },
    }),
  RateLimit: z
    .string()
    .optional()
    .meta({
      description: 'What is left of it, and for how many seconds, such as `"read";r=187;t=1`.',
      header: { id: "RateLimit" },
    }),
};

/** On a 405. */
export const ALLOW = {
  Allow: z
    .string()
    .optional()
    .meta({ description: "With 405: the methods that the address answers to.", header: { id: "Allow" } }),
};

/** On a 401 for want of a user. */
export const WWW_AUTHENTICATE = {
  "WWW-Authenticate": z.literal("Bearer").meta({
    description: "What the address asks for.",
    header: { id: "WWW-Authenticate" },
  }),
};
