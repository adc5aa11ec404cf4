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
