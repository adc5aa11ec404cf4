import type { Standing } from "../domain/audience.ts";
import type { Offer, Window, WindowKind } from "../domain/supply.ts";
import type { Audience, VoucherType } from "../domain/voucher.ts";
import type { Queryable } from "./pool.ts";
import { bind, loadStatements } from "./statements.ts";

const sql = loadStatements(new URL("./listings.sql", import.meta.url), [
  "insert_listing",
  "insert_window",
  "find_listing_batch",
  "select_listings",
]);

/** Offers a batch on the marketplace. */
export async function insertListing(db: Queryable, id: string, batchId: string): Promise<void> {
  await db.query(bind(sql.insert_listing, [id, batchId]));
}

/** Gives a batch a window. */
export async function insertWindow(db: Queryable, batchId: string, kind: WindowKind, window: Window): Promise<void> {
  await db.query(bind(sql.insert_window, [batchId, kind, window.opensAt, window.closesAt]));
}

/** The batch that a listing offers, with its product; null when there is no such listing. */
export async function findListingBatch(
  db: Queryable,
  listingId: string,
): Promise<{ batchId: string; productId: string } | null> {
  const { rows } = await db.query<{ batch_id: string; product_id: string }>(bind(sql.find_listing_batch, [listingId]));
  return rows[0] === undefined ? null : { batchId: rows[0].batch_id, productId: rows[0].product_id };
}

/** A listing and everything that decides whether one caller may buy from it, from one snapshot. */
export interface Listing {
  id: string;
  now: Date;
  offer: Offer;
  standing: Standing;
  /** Vouchers that could be bought, counted up to 1 001. */
  available: number;
  productId: string;
  productName: string;
  productKey: string;
  type: VoucherType;
  brand: string;
  retailPriceUsd: number;
  priceUsd: number;
  benefitMonths: number;
  usageUnitLabel: string | null;
}

interface ListingRow {
  now: Date;
  id: string;
  batch_id: string;
  audience: Audience;
  valid_until: Date;
  retail_price_usd: number;
  price_usd: number;
  benefit_months: number;
  usage_unit_label: string | null;
  product_id: string;
  product_name: string;
  product_key: string;
  type: VoucherType;
  brand: string;
  has_window: boolean;
  opens_at: Date | null;
  closes_at: Date | null;
  is_owner: boolean | null;
  contract_id: string | null;
  ends_at: Date | null;
  available: number;
}

function toListing(row: ListingRow): Listing {
  return {
    id: row.id,
    now: row.now,
    offer: {
      batchId: row.batch_id,
      audience: row.audience,
      validUntil: row.valid_until,
      window: row.has_window ? { opensAt: row.opens_at, closesAt: row.closes_at } : null,
    },
    standing: {
      isOwner: row.is_owner === true,
      contract: row.contract_id === null ? null : { id: row.contract_id, status: "Active", endsAt: row.ends_at },
    },
    available: row.available,
    productId: row.product_id,
    productName: row.product_name,
    productKey: row.product_key,
    type: row.type,
    brand: row.brand,
    retailPriceUsd: row.retail_price_usd,
    priceUsd: row.price_usd,
    benefitMonths: row.benefit_months,
    usageUnitLabel: row.usage_unit_label,
  };
}

/** One listing as a caller sees it, or null. `userId` is null for an anonymous caller. */
export async function findListing(db: Queryable, userId: string | null, listingId: string): Promise<Listing | null> {
  const { rows } = await db.query<ListingRow>(bind(sql.select_listings, [userId, listingId, "", 1]));
  return rows[0] === undefined ? null : toListing(rows[0]);
}

/** At most `limit` listings of vouchers that are still valid, behind `after`, oldest first. */
export async function selectListings(
  db: Queryable,
  userId: string | null,
  after: string,
  limit: number,
): Promise<Listing[]> {
  const { rows } = await db.query<ListingRow>(bind(sql.select_listings, [userId, null, after, limit]));
  return rows.map(toListing);
}
