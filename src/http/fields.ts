import { z } from "zod";
import { EVENTS_LIMIT_MAX } from "../services/read-chain.ts";
import { LISTINGS_LIMIT_MAX } from "../services/view-listings.ts";

/** Longest code or ticket that is read at all, before normalising. Codes have at most 64 symbols, but may come with spaces. */
const CODE_INPUT_MAX = 256;
const REFERENCE_MAX = 128;
const NOTE_MAX = 500;
const REASON_MAX = 200;
/** Longest id that is looked for at all. */
const ID_INPUT_MAX = 128;
const TOKEN_MAX = 128;

const text = z.string({ error: (issue) => (issue.input === undefined ? "is required" : "must be a string") });

/** Text with a limit counted in code points, as people count characters. */
function textUpTo(max: number) {
  return text.refine((value) => [...value].length <= max, `must be at most ${max} characters long`);
}

export const code = textUpTo(CODE_INPUT_MAX).min(1, "must not be empty");
export const ticket = textUpTo(CODE_INPUT_MAX).min(1, "must not be empty");
export const token = textUpTo(TOKEN_MAX);
export const note = textUpTo(NOTE_MAX);
export const reason = textUpTo(REASON_MAX);

/** A caller's own reference, trimmed. */
const reference = text
  .trim()
  .min(1, "must not be empty")
  .refine((value) => [...value].length <= REFERENCE_MAX, `must be at most ${REFERENCE_MAX} characters long`)
  .refine((value) => !/\p{Cc}/u.test(value), "must not contain control characters");

/** The partner's order reference. */
export const externalRef = reference;
/** The storefront's captured payment. */
export const paymentRef = reference;

/** The query of the marketplace. A cursor is a listing's id, and opaque. */
export const listingsQuery = z.object({
  cursor: z
    .string({ error: "must be one value" })
    .max(ID_INPUT_MAX, "is not a cursor")
    .regex(/^[^\0]*$/, "is not a cursor")
    .default(""),
  limit: queryInteger(1, LISTINGS_LIMIT_MAX, 20),
});

/** An id or link code from the path; what cannot be one becomes one that does not exist. */
export function pathId(value: unknown): string {
  const id = String(value);
  return id.length > ID_INPUT_MAX || id.includes("\0") ? "" : id;
}

/** The query of the events endpoints. */
export const eventsQuery = z.object({
  after: queryInteger(0, 2_147_483_647, 0),
  limit: queryInteger(1, EVENTS_LIMIT_MAX, EVENTS_LIMIT_MAX),
});

function queryInteger(min: number, max: number, fallback: number) {
  const sentence = `must be a whole number from ${min} to ${max}`;
  return z
    .string({ error: sentence })
    .regex(/^\d{1,10}$/, sentence)
    .transform(Number)
    .refine((value) => value >= min && value <= max, sentence)
    .default(fallback);
}
