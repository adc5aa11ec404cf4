import type pg from "pg";
import { AppError } from "../../contract/errors.ts";
import { markSandbox, pickFields } from "../../contract/fields.ts";
import {
  AVAILABLE_MAX,
  type ListingResponse,
  type ListingsResponse,
  listingResponse,
} from "../../contract/listings.ts";
import { findListing, type Listing, selectListings } from "../../db/listings.ts";
import { canBuy } from "../../domain/offer.ts";
import type { Bulkhead } from "../batches/bulkhead.ts";

/** A page of listings that are still valid. A sandbox's are for its members and referrers only. @throws AppError `overloaded`. */
export async function viewListings(
  ctx: { pool: pg.Pool; publicReads: Bulkhead },
  userId: string | null,
  cursor: string,
  limit: number,
): Promise<ListingsResponse> {
  const found = await ctx.publicReads(() => selectListings(ctx.pool, userId, cursor, limit + 1));
  const page = found.slice(0, limit);
  return {
    listings: page.map(viewListing),
    nextCursor: found.length > limit ? (page.at(-1)?.id ?? null) : null,
  };
}

/** Reads one listing. @throws AppError `listing_not_found`, `overloaded`. */
export async function viewOneListing(
  ctx: { pool: pg.Pool; publicReads: Bulkhead },
  userId: string | null,
  listingId: string,
): Promise<ListingResponse> {
  const listing = await ctx.publicReads(() => findListing(ctx.pool, userId, listingId));
  if (listing === null) throw new AppError("listing_not_found");
  return viewListing(listing);
}

function viewListing(listing: Listing): ListingResponse {
  const { offer, eligibility, available, now, sandbox, ...fields } = listing;
  return pickFields(listingResponse, {
    ...fields,
    audience: offer.audience,
    referrerOnly: offer.audience === "ReferrerOnly",
    available: Math.min(available, AVAILABLE_MAX),
    availableMore: available > AVAILABLE_MAX,
    validUntil: offer.validUntil.toISOString(),
    canBuy: canBuy(offer, available, eligibility, now),
    ...markSandbox(sandbox),
  });
}
