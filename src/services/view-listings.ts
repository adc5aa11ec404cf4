import type { ApiContext } from "../context.ts";
import { findListing, type Listing, selectListings } from "../db/listings.ts";
import { AppError } from "../domain/errors.ts";
import { canBuy } from "../domain/supply.ts";
import type { Audience, VoucherType } from "../domain/voucher.ts";

/** Listings on one page at most. */
export const LISTINGS_LIMIT_MAX = 100;
/** Supply is counted exactly up to here. */
const COUNTED_MAX = 1_000;

/** A listing as one caller sees it (contract, "Listing"). */
export interface ListingView {
  id: string;
  productId: string;
  productName: string;
  productKey: string;
  type: VoucherType;
  brand: string;
  retailPriceUsd: number;
  priceUsd: number;
  benefitMonths: number;
  usageUnitLabel: string | null;
  audience: Audience;
  /** The badge. */
  referrerOnly: boolean;
  available: number;
  /** There are more than `available`. */
  availableMore: boolean;
  validUntil: string;
  canBuy: boolean;
}

export interface ListingsPage {
  listings: ListingView[];
  /** For the next page; null on the last one. */
  nextCursor: string | null;
}

/**
 * A page of the marketplace. Listings of expired batches are left out; referrer-only ones are shown to everyone.
 * @throws AppError `overloaded`.
 */
export async function viewListings(
  ctx: Pick<ApiContext, "pool" | "publicReads">,
  userId: string | null,
  cursor: string,
  limit: number,
): Promise<ListingsPage> {
  const found = await ctx.publicReads(() => selectListings(ctx.pool, userId, cursor, limit + 1));
  const page = found.slice(0, limit);
  return {
    listings: page.map(viewListing),
    nextCursor: found.length > limit ? (page.at(-1)?.id ?? null) : null,
  };
}

/**
 * One listing.
 * @throws AppError `listing_not_found`, `overloaded`.
 */
export async function viewOneListing(
  ctx: Pick<ApiContext, "pool" | "publicReads">,
  userId: string | null,
  listingId: string,
): Promise<ListingView> {
  const listing = await ctx.publicReads(() => findListing(ctx.pool, userId, listingId));
  if (listing === null) throw new AppError("listing_not_found", "There is no such listing.");
  return viewListing(listing);
}

function viewListing(listing: Listing): ListingView {
  const { offer, standing, available, now } = listing;
  return {
    id: listing.id,
    productId: listing.productId,
    productName: listing.productName,
    productKey: listing.productKey,
    type: listing.type,
    brand: listing.brand,
    retailPriceUsd: listing.retailPriceUsd,
    priceUsd: listing.priceUsd,
    benefitMonths: listing.benefitMonths,
    usageUnitLabel: listing.usageUnitLabel,
    audience: offer.audience,
    referrerOnly: offer.audience === "ReferrerOnly",
    available: Math.min(available, COUNTED_MAX),
    availableMore: available > COUNTED_MAX,
    validUntil: offer.validUntil.toISOString(),
    canBuy: canBuy(offer, available, standing, now),
  };
}
