import type pg from "pg";
import type { Bulkhead, Requester } from "../core/callers/bulkhead.ts";
import { AppError } from "../platform/api/errors.ts";
import { markSandbox, pickFields } from "../platform/api/fields.ts";
import {
  AVAILABLE_MAX,
  COUNTED_MAX,
  type ListingResponse,
  type ListingsResponse,
  listingResponse,
} from "./api/listings.ts";
import { countAvailable, findListing, type Listing, selectListings } from "./db/listings.ts";
import { MARKETPLACE_ERRORS } from "./declared.ts";
import type { KeptCounts } from "./kept-counts.ts";
import { canBuy } from "./offer.ts";

interface Deps {
  pool: pg.Pool;
  publicReads: Bulkhead<"visitor">;
}

/**
 * A page of listings that are still valid. Only a sandbox's members and referrers see its listings. Reads now whether a
 * listing is sold out. The number of available vouchers may be up to 20 seconds old.
 * @throws AppError `overloaded`.
 */
export async function viewListings(
  ctx: Deps & { keptCounts: KeptCounts },
  visitor: Requester<"visitor">,
  userId: string | null,
  cursor: string,
  limit: number,
): Promise<ListingsResponse> {
  const { listings, nextCursor } = await findListings(ctx, visitor, userId, cursor, limit);
  return { listings: listings.map(({ shown }) => shown), nextCursor };
}

/** The listings of {@link viewListings}, each with its organization's time zone. */
export async function findListings(
  ctx: Deps & { keptCounts: KeptCounts },
  visitor: Requester<"visitor">,
  userId: string | null,
  cursor: string,
  limit: number,
): Promise<{ listings: { shown: ListingResponse; timeZone: string }[]; nextCursor: string | null }> {
  const found = await ctx.publicReads(visitor, () => selectListings(ctx.pool, userId, cursor, limit + 1));
  const page = found.slice(0, limit);
  const view = async (listing: Listing) => {
    const available = listing.isLeft ? Math.max(1, await ctx.keptCounts.read(listing.offer.batchId, visitor)) : 0;
    return { shown: viewListing(listing, available), timeZone: listing.timeZone };
  };
  return {
    listings: await Promise.all(page.map(view)),
    nextCursor: found.length > limit ? (page.at(-1)?.id ?? null) : null,
  };
}

/** Reads one listing, and counts its vouchers. @throws AppError `listing_not_found`, `overloaded`. */
export async function viewOneListing(
  ctx: Deps,
  visitor: Requester<"visitor">,
  userId: string | null,
  listingId: string,
): Promise<ListingResponse> {
  return ctx.publicReads(visitor, async () => {
    const listing = await findListing(ctx.pool, userId, listingId);
    if (listing === null) throw new AppError(MARKETPLACE_ERRORS.listing_not_found);
    const batchIds = [listing.offer.batchId];
    const [counted] = await countAvailable(ctx.pool, { batchIds, countedMax: COUNTED_MAX });
    return viewListing(listing, counted?.available ?? 0);
  });
}

function viewListing(listing: Listing, available: number): ListingResponse {
  const { offer, eligibility, isLeft: _, now, sandbox, ...fields } = listing;
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
