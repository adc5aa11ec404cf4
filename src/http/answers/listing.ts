import { z } from "zod";
import { AUDIENCES, VOUCHER_TYPES } from "../../domain/voucher.ts";
import { EXAMPLE } from "./example.ts";
import { benefitMonths, brand, count, productKey, productName, timestamp, usageUnitLabel, usd } from "./values.ts";

/** A listing as one caller sees it (contract, "Listing"). */
export const listing = z
  .object({
    id: z.string().meta({ description: "The listing's id.", examples: [EXAMPLE.listingId] }),
    productId: z.string().meta({ description: "The product's id.", examples: [EXAMPLE.productId] }),
    productName,
    productKey,
    type: z.enum(VOUCHER_TYPES).meta({ description: "What kind of product it is." }),
    brand,
    retailPriceUsd: usd("The product's list price.", EXAMPLE.retailPriceUsd),
    priceUsd: usd("What the voucher costs here.", EXAMPLE.priceUsd),
    benefitMonths,
    usageUnitLabel,
    audience: z.enum(AUDIENCES).meta({
      description:
        "OpenToAll: anyone may take it. ReferrerOnly: only holders of an active referrer contract with the brand.",
    }),
    referrerOnly: z.boolean().meta({ description: "Whether to badge it as for referrers only." }),
    available: count(0, "Vouchers that could be bought at the moment, counted up to 1000.", 214),
    availableMore: z.boolean().meta({ description: "There are more than `available` says." }),
    validUntil: timestamp("The first moment at which its vouchers cannot be used any more.", EXAMPLE.validUntil),
    canBuy: z.boolean().meta({
      description:
        "Whether a buy by this very caller would succeed at this moment, by audience, window and supply. Judged by the service; a client cannot know it.",
    }),
  })
  .meta({ id: "Listing" });

/** A page of the marketplace. */
export const listingsPage = z
  .object({
    listings: z.array(listing).meta({ description: "The oldest listings first." }),
    nextCursor: z
      .string()
      .nullable()
      .meta({
        description: "Give it as `cursor` for the next page; null on the last one.",
        examples: [EXAMPLE.listingId],
      }),
  })
  .meta({ id: "ListingsPage" });

export const LISTING_EXAMPLE: z.infer<typeof listing> = {
  id: EXAMPLE.listingId,
  productId: EXAMPLE.productId,
  productName: EXAMPLE.productName,
  productKey: EXAMPLE.productKey,
  type: "Subscription",
  brand: EXAMPLE.brand,
  retailPriceUsd: EXAMPLE.retailPriceUsd,
  priceUsd: EXAMPLE.priceUsd,
  benefitMonths: 3,
  usageUnitLabel: null,
  audience: "OpenToAll",
  referrerOnly: false,
  available: 214,
  availableMore: false,
  validUntil: EXAMPLE.validUntil,
  canBuy: true,
};
