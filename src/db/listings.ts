import type { ContractStatus, Eligibility, MemberRole } from "../domain/audience.ts";
import type { Offer, Window, WindowKind } from "../domain/offer.ts";
import type { Audience, VoucherType } from "../domain/voucher.ts";
import { boolean, integer, numeric, orNull, outerJoined, type Row, text, textOf, timestamptz } from "./columns.ts";
import type { Queryable } from "./pool.ts";
import { execute, loadStatements, readRow, readRows } from "./statements.ts";

const LISTING = {
  id: text,
  /** The database's clock. */
  now: timestamptz,
  /** Vouchers that can be bought, counted up to 1 001. */
  available: integer,
  productId: text,
  productName: text,
  productKey: text,
  type: textOf<VoucherType>(),
  brand: text,
  retailPriceUsd: numeric,
  priceUsd: numeric,
  benefitMonths: integer,
  usageUnitLabel: orNull(text),
  /** Whether its organization is a sandbox. */
  sandbox: boolean,
};

export const sql = loadStatements(new URL("./listings.sql", import.meta.url), {
  insert_listing: {},
  insert_window: {},
  count_stock: { brand: text, left: integer },
  select_listings: {
    ...LISTING,
    batchId: text,
    audience: textOf<Audience>(),
    validUntil: timestamptz,
    window: outerJoined({ kind: text, opensAt: orNull(timestamptz), closesAt: orNull(timestamptz) }),
    role: orNull(textOf<MemberRole>()),
    contract: outerJoined({ id: text, status: textOf<ContractStatus>(), endsAt: orNull(timestamptz) }),
  },
});

/** Offers a batch on the marketplace. */
export async function insertListing(db: Queryable, id: string, batchId: string): Promise<void> {
  await execute(db, sql.insert_listing, [id, batchId]);
}

/** Gives a batch a window. */
export async function insertWindow(db: Queryable, batchId: string, kind: WindowKind, window: Window): Promise<void> {
  await execute(db, sql.insert_window, [batchId, kind, window.opensAt, window.closesAt]);
}

/** A listing and everything that decides whether one caller can buy from it, from one snapshot. */
export interface Listing extends Row<typeof LISTING> {
  offer: Offer;
  eligibility: Eligibility;
}

function toListing(row: Row<typeof sql.select_listings.columns>): Listing {
  const { batchId, audience, validUntil, window, role, contract, ...listing } = row;
  return {
    ...listing,
    offer: { batchId, audience, validUntil, window },
    eligibility: { isOwner: role === "owner", contract },
  };
}

/** One listing as a caller sees it, or null. `userId` is null for an anonymous caller. */
export async function findListing(db: Queryable, userId: string | null, listingId: string): Promise<Listing | null> {
  const row = await readRow(db, sql.select_listings, [userId, listingId, "", 1]);
  return row === null ? null : toListing(row);
}

/** At most `limit` listings of valid vouchers with ids after `after`, in id order. */
export async function selectListings(
  db: Queryable,
  userId: string | null,
  after: string,
  limit: number,
): Promise<Listing[]> {
  return (await readRows(db, sql.select_listings, [userId, null, after, limit])).map(toListing);
}

/** For each of the newest listings, its brand and the vouchers that users can still acquire, counted up to `leftMax`. No sandboxes. */
export function countStock(
  db: Queryable,
  listingsMax: number,
  leftMax: number,
): Promise<{ brand: string; left: number }[]> {
  return readRows(db, sql.count_stock, [listingsMax, leftMax]);
}
