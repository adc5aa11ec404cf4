import { z } from "zod";
import { ENTITY_TYPE } from "../domain/chain.ts";
import { EVENTS_LIMIT_MAX } from "../services/read-chain.ts";
import { LISTINGS_LIMIT_MAX } from "../services/view-listings.ts";
import { EXAMPLE } from "./answers/example.ts";

/** Longest code or ticket that is read at all, before normalising. Codes have at most 64 symbols, but may come with spaces. */
const CODE_INPUT_MAX = 256;
const REFERENCE_MAX = 128;
const NOTE_MAX = 500;
const REASON_MAX = 200;
/** Longest id that is looked for at all. */
const ID_INPUT_MAX = 128;
const TOKEN_MAX = 128;

const text = z.string({ error: (issue) => (issue.input === undefined ? "is required" : "must be a string") });

/** Text with a limit counted in code points, as people and JSON Schema count characters. */
function textUpTo(max: number, description: string, ...examples: string[]) {
  return text
    .refine((value) => [...value].length <= max, `must be at most ${max} characters long`)
    .meta({ maxLength: max, description, examples });
}

/** The same, and not empty. */
function filledTextUpTo(max: number, description: string, ...examples: string[]) {
  const field = textUpTo(max, description, ...examples);
  return field.min(1, "must not be empty").meta(field.meta() ?? {});
}

export const code = filledTextUpTo(
  CODE_INPUT_MAX,
  "The voucher's code, typed in any case, with or without spaces and hyphens, with O for 0 and I or L for 1. A reservation's ticket works, too.",
  EXAMPLE.code,
);
export const ticket = filledTextUpTo(CODE_INPUT_MAX, "A ticket from reserve.", EXAMPLE.ticket);
export const token = textUpTo(
  TOKEN_MAX,
  "The token that came with the ticket. Needed only to redeem what another key of your organization holds. One that does not fit is refused, even from the holder.",
  EXAMPLE.token,
);
export const note = textUpTo(
  NOTE_MAX,
  "Free text, kept for ever in the voucher's sealed history: no personal data.",
  "Till 4, evening shift",
);
export const reason = textUpTo(REASON_MAX, "Why the hold is not needed. Kept with the hold.", "customer left");

/** A caller's own reference, trimmed. */
function reference(description: string, example: string) {
  return text
    .trim()
    .min(1, "must not be empty")
    .refine((value) => [...value].length <= REFERENCE_MAX, `must be at most ${REFERENCE_MAX} characters long`)
    .refine((value) => !/\p{Cc}/u.test(value), "must not contain control characters")
    .meta({ maxLength: REFERENCE_MAX, description, examples: [example] });
}

/** The partner's order reference. */
export const externalRef = reference(
  "Your own reference of the order, unique within your organization: the key of idempotency. One reference burns one voucher, ever. Spaces around it are cut off; control characters are refused.",
  EXAMPLE.externalRef,
);

/** What a purchase is asked with. */
export const buyBody = z.object({
  /** The storefront's captured payment. */
  paymentRef: reference(
    "The payment that the storefront has captured. One payment of a user buys one voucher, ever. Spaces around it are cut off; control characters are refused.",
    EXAMPLE.paymentRef,
  ),
});

/** What a claim is asked with. */
export const emptyBody = z.object({}).meta({ description: "Nothing is read from it; it may be left out." });

/** The query of the marketplace. A cursor is a listing's id, and opaque. */
export const listingsQuery = z.object({
  cursor: z
    .string({ error: "must be one value" })
    .max(ID_INPUT_MAX, "is not a cursor")
    .regex(/^[^\0]*$/, "is not a cursor")
    .default("")
    .meta({
      description: "The `nextCursor` of the page before; left out for the first page.",
      override: { pattern: undefined, default: undefined },
    }),
  limit: queryInteger(1, LISTINGS_LIMIT_MAX, 20, "Listings on the page."),
});

export const codeOrTicket = z.string().meta({
  description: "A voucher's code, typed in any way that a person may type it, or a reservation's ticket.",
  examples: [EXAMPLE.code],
});
export const entityType = z.string().meta({ description: "What the chain is of.", examples: [ENTITY_TYPE] });
export const entityId = z.string().meta({ description: "The voucher's id.", examples: [EXAMPLE.voucherId] });
export const listingId = z.string().meta({ description: "The listing's id.", examples: [EXAMPLE.listingId] });
export const productId = z.string().meta({ description: "The product's id.", examples: [EXAMPLE.productId] });
export const linkCode = z.string().meta({ description: "The link's code.", examples: [EXAMPLE.linkCode] });

/** An id or link code from the path; what cannot be one becomes one that does not exist. */
export function pathId(value: unknown): string {
  const id = String(value);
  return id.length > ID_INPUT_MAX || id.includes("\0") ? "" : id;
}

/** Events on a page that people read, when no number is asked for: a few screens. */
const EVENTS_PAGE_LIMIT = 50;

/** The query of the events endpoints. */
export const eventsQuery = z.object({
  after: queryInteger(0, 2_147_483_647, 0, "Only events behind this `sequence`."),
  limit: queryInteger(1, EVENTS_LIMIT_MAX, EVENTS_LIMIT_MAX, "Events on the page."),
});

/** The same where the answer is a page. */
export const eventsPageQuery = eventsQuery.extend({
  limit: queryInteger(1, EVENTS_LIMIT_MAX, EVENTS_PAGE_LIMIT, "Events on the page."),
});

function queryInteger(min: number, max: number, fallback: number, description: string) {
  const sentence = `must be a whole number from ${min} to ${max}`;
  return z
    .string({ error: sentence })
    .regex(/^\d{1,10}$/, sentence)
    .transform(Number)
    .refine((value) => value >= min && value <= max, sentence)
    .default(fallback)
    .meta({
      description,
      // What comes as text stands for a number.
      override: { type: "integer", pattern: undefined, minimum: min, maximum: max, default: fallback },
    });
}
