import type { CatalogList } from "../../acts/db/lists.ts";
import type { MemberRole } from "../../core/catalog/db/catalog.ts";
import type { Audience, VoucherType } from "../../core/voucher/voucher.ts";
import {
  arrayOf,
  boolean,
  integer,
  numeric,
  orNull,
  outerJoined,
  type Row,
  text,
  textOf,
  timestamptz,
} from "../../platform/db/columns.ts";
import type { Queryable } from "../../platform/db/pool.ts";
import { Statements } from "../../platform/db/statements.ts";
import type { ContractStatus, Eligibility } from "../audience.ts";
import type { Offer } from "../offer.ts";

const LISTING = {
  id: text,
  /** The time on the database's clock. */
  now: timestamptz,
  isLeft: boolean,
  productId: text,
  productName: text,
  productKey: text,
  type: textOf<VoucherType>(),
  brand: text,
  retailPriceUsd: numeric,
  priceUsd: numeric,
  benefitMonths: integer,
  usageUnitLabel: orNull(text),
  /** The organization's. */
  timeZone: text,
  sandbox: boolean,
};

export const sql = new Statements(new URL("./listings.sql", import.meta.url));

export const insertListing = sql.execute("insert_listing", { id: text, batchId: text });
/** All listings, as administrators see them. */
export const LISTINGS = {
  name: "listings",
  filters: ["org", "product", "batch"],
  key: "id",
  select: sql.rows(
    "list_listings",
    {
      id: text,
      batchId: text,
      productId: text,
      productName: text,
      audience: textOf<Audience>(),
      validUntil: timestamptz,
      createdAt: timestamptz,
    },
    { org: orNull(text), product: orNull(text), batch: orNull(text), after: text, limit: integer },
  ),
} as const satisfies CatalogList;

export const countStock = sql.rows(
  "count_stock",
  { brand: text, left: integer },
  { listingsMax: integer, leftMax: integer },
);
const LISTING_ROW = {
  ...LISTING,
  batchId: text,
  audience: textOf<Audience>(),
  validUntil: timestamptz,
  suspended: boolean,
  window: outerJoined({ kind: text, opensAt: orNull(timestamptz), closesAt: orNull(timestamptz) }),
  role: orNull(textOf<MemberRole>()),
  contract: outerJoined({ id: text, status: textOf<ContractStatus>(), endsAt: orNull(timestamptz) }),
};
/** How many vouchers of each batch can be bought, counted up to `countedMax`. */
export const countAvailable = sql.rows(
  "count_available",
  { batchId: text, available: integer },
  { batchIds: arrayOf(text), countedMax: integer },
);
const selectListingRows = sql.rows("select_listings", LISTING_ROW, {
  userId: orNull(text),
  listingId: orNull(text),
  after: text,
  limit: integer,
});

/** A listing, and all data that decides whether one caller can buy from it, read in one snapshot. */
export interface Listing extends Row<typeof LISTING> {
  offer: Offer;
  eligibility: Eligibility;
}

function toListing(row: Row<typeof LISTING_ROW>): Listing {
  const { batchId, audience, validUntil, suspended, window, role, contract, ...listing } = row;
  return {
    ...listing,
    offer: { batchId, audience, validUntil, suspended, window },
    eligibility: { isOwner: role === "owner", contract },
  };
}

/** One listing as a caller may see it, or null. `userId` is null for an anonymous caller. */
export async function findListing(db: Queryable, userId: string | null, listingId: string): Promise<Listing | null> {
  const [row] = await selectListingRows(db, { userId, listingId, after: "", limit: 1 });
  return row === undefined ? null : toListing(row);
}

/** At most `limit` listings of valid vouchers with ids after `after`, in id order. */
export async function selectListings(
  db: Queryable,
  userId: string | null,
  after: string,
  limit: number,
): Promise<Listing[]> {
  return (await selectListingRows(db, { userId, listingId: null, after, limit })).map(toListing);
}
