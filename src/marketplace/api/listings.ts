import { z } from "zod";
import { AUDIENCES, VOUCHER_TYPES } from "../../core/voucher/voucher.ts";
import { EXAMPLE, examples } from "../../platform/api/example.ts";
import {
  benefitMonths,
  brand,
  count,
  flag,
  ID_INPUT_MAX,
  named,
  pickFields,
  productId,
  productKey,
  productName,
  queryInteger,
  sandbox,
  text,
  timestamp,
  usageUnitLabel,
  usd,
} from "../../platform/api/fields.ts";
import { problem } from "../../platform/api/problems.ts";

/** Maximum number of listings on one page. */
const LISTINGS_LIMIT_MAX = 100;
/** Maximum number of available vouchers that a response states. */
export const AVAILABLE_MAX = 1_000;
/** Available vouchers are counted up to this number, to find out whether there are more than {@link AVAILABLE_MAX}. */
export const COUNTED_MAX = AVAILABLE_MAX + 1;

export const listingId = text("The listing's id.", EXAMPLE.listingId);

/** The query of the list of listings. The cursor is the id of the previous page's last listing. */
export const listingsQuery = z.object({
  cursor: z
    .string({ error: problem("notOneValue") })
    .max(ID_INPUT_MAX, problem("noCursor"))
    .regex(/^[^\0]*$/, problem("noCursor"))
    .default("")
    .meta({
      description: "The previous page's `nextCursor`; omit it for the first page.",
      override: { pattern: undefined, default: undefined },
    }),
  limit: queryInteger(1, LISTINGS_LIMIT_MAX, 20, "Maximum number of listings on the page."),
});

/** A listing, as one caller may see it. */
export const listingResponse = named("Listing", {
  id: listingId,
  productId,
  productName,
  productKey,
  type: z.enum(VOUCHER_TYPES).meta({ description: "The kind of product." }),
  brand,
  retailPriceUsd: usd("The product's list price.", EXAMPLE.retailPriceUsd),
  priceUsd: usd("The price of a voucher in this listing.", EXAMPLE.priceUsd),
  benefitMonths,
  usageUnitLabel,
  audience: z.enum(AUDIENCES).meta({
    description:
      "OpenToAll: any user can claim or buy a voucher. ReferrerOnly: only users with an active referrer contract " +
      "with the brand, and owners of its organization, can.",
  }),
  referrerOnly: flag("Whether to mark the listing as for referrers only."),
  available: count(
    0,
    `Vouchers that can be bought, counted up to ${AVAILABLE_MAX}; in a list at most 20 seconds ago. 0 only if ` +
      "none can be bought now.",
    214,
  ),
  availableMore: flag("Whether more vouchers are available than `available` states."),
  validUntil: timestamp("The first moment at which its vouchers are no longer valid.", EXAMPLE.validUntil),
  canBuy: flag(
    "Whether a purchase by this caller would succeed now, given the audience, the window and the supply. Use this " +
      "field instead of deriving it from others.",
  ),
  sandbox,
});

export type ListingResponse = z.output<typeof listingResponse>;

export const listingsResponse = named("ListingsPage", {
  listings: z.array(listingResponse).meta({ description: "The oldest listings first." }),
  nextCursor: text("Send it as `cursor` to get the next page; null on the last page.", EXAMPLE.listingId).nullable(),
});

export type ListingsResponse = z.output<typeof listingsResponse>;

const LISTING = pickFields(listingResponse, {
  ...EXAMPLE,
  id: EXAMPLE.listingId,
  audience: "OpenToAll",
  referrerOnly: false,
  available: 214,
  availableMore: false,
  canBuy: true,
});

examples.add(listingResponse, {
  open: { summary: "Open to everyone", value: LISTING },
  referrersOnly: {
    summary: "Referrers only, seen by a user who is not a referrer",
    value: { ...LISTING, audience: "ReferrerOnly", referrerOnly: true, canBuy: false },
  },
});

examples.add(listingsResponse, {
  page: { summary: "A page that is not the last", value: { listings: [LISTING], nextCursor: EXAMPLE.listingId } },
});
