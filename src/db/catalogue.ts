import type { Window, WindowKind } from "../domain/supply.ts";
import type { Audience, VoucherType } from "../domain/voucher.ts";
import type { Queryable } from "./pool.ts";
import { bind, loadStatements } from "./statements.ts";

const sql = loadStatements(new URL("./catalogue.sql", import.meta.url), [
  "insert_organization",
  "find_organization",
  "insert_brand",
  "insert_product",
  "insert_batch",
  "count_issued_vouchers",
  "select_windows",
  "find_batch",
]);

/** Writes an organization. */
export async function insertOrganization(db: Queryable, id: string, name: string): Promise<void> {
  await db.query(bind(sql.insert_organization, [id, name]));
}

/** An organization's name, or null. */
export async function findOrganization(db: Queryable, id: string): Promise<string | null> {
  const { rows } = await db.query<{ name: string }>(bind(sql.find_organization, [id]));
  return rows[0]?.name ?? null;
}

/** Writes a brand of an organization. */
export async function insertBrand(db: Queryable, id: string, organizationId: string, name: string): Promise<void> {
  await db.query(bind(sql.insert_brand, [id, organizationId, name]));
}

/** A product to be written. Prices are US dollars. */
export interface NewProduct {
  id: string;
  brandId: string;
  key: string;
  name: string;
  type: VoucherType;
  retailPriceUsd: number;
  priceUsd: number;
  /** 0: the listing states no term. */
  benefitMonths: number;
  usageUnitLabel: string | null;
}

/** Writes a product of a brand. */
export async function insertProduct(db: Queryable, product: NewProduct): Promise<void> {
  await db.query(
    bind(sql.insert_product, [
      product.id,
      product.brandId,
      product.key,
      product.name,
      product.type,
      product.retailPriceUsd,
      product.priceUsd,
      product.benefitMonths,
      product.usageUnitLabel,
    ]),
  );
}

/** A batch to be written; its terms are the product's of that moment. */
export interface NewBatch {
  id: string;
  productId: string;
  audience: Audience;
  count: number;
  validUntil: Date;
}

/** What the vouchers of a new batch have in common. */
export interface BatchTerms {
  organizationId: string;
  productKey: string;
  retailPriceUsd: number;
  priceUsd: number;
  /** The database's clock. */
  issuedAt: Date;
}

/** Writes a batch and returns its terms, or null when there is no such product. */
export async function insertBatch(db: Queryable, batch: NewBatch): Promise<BatchTerms | null> {
  const { rows } = await db.query<{
    organization_id: string;
    product_key: string;
    retail_price_usd: number;
    price_usd: number;
    issued_at: Date;
  }>(bind(sql.insert_batch, [batch.id, batch.productId, batch.audience, batch.count, batch.validUntil]));
  const row = rows[0];
  if (row === undefined) return null;
  return {
    organizationId: row.organization_id,
    productKey: row.product_key,
    retailPriceUsd: row.retail_price_usd,
    priceUsd: row.price_usd,
    issuedAt: row.issued_at,
  };
}

/** How many vouchers there are. */
export async function countIssuedVouchers(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ count: number }>(bind(sql.count_issued_vouchers, []));
  return rows[0]?.count ?? 0;
}

/** A batch's window of each kind; null where it has none. */
export async function selectWindows(db: Queryable, batchId: string): Promise<Record<WindowKind, Window | null>> {
  const { rows } = await db.query<{ kind: WindowKind; opens_at: Date | null; closes_at: Date | null }>(
    bind(sql.select_windows, [batchId]),
  );
  const windowOf = (kind: WindowKind): Window | null => {
    const row = rows.find((window) => window.kind === kind);
    return row === undefined ? null : { opensAt: row.opens_at, closesAt: row.closes_at };
  };
  return { claim: windowOf("claim"), buy: windowOf("buy") };
}

/** A batch as an operator sees it, with how many of its vouchers stand how. */
export interface BatchSummary {
  id: string;
  productId: string;
  productName: string;
  audience: Audience;
  count: number;
  validUntil: Date;
  retailPriceUsd: number;
  priceUsd: number;
  benefitMonths: number;
  usageUnitLabel: string | null;
  createdAt: Date;
  active: number;
  expired: number;
  redeemed: number;
  voided: number;
  windows: Record<WindowKind, Window | null>;
  /** Vouchers that can still be taken from the windows, those on hold among them; null when there is no window. */
  left: number | null;
}

/** A batch with how its vouchers stand, or null. Takes seconds for a million vouchers. */
export async function findBatch(db: Queryable, id: string): Promise<BatchSummary | null> {
  const { rows } = await db.query<{
    id: string;
    product_id: string;
    product_name: string;
    audience: Audience;
    voucher_count: number;
    valid_until: Date;
    retail_price_usd: number;
    price_usd: number;
    benefit_months: number;
    usage_unit_label: string | null;
    created_at: Date;
    active: number;
    expired: number;
    redeemed: number;
    voided: number;
    left_in_windows: number;
  }>(bind(sql.find_batch, [id]));
  const row = rows[0];
  if (row === undefined) return null;
  // Windows are made with their batch and never change.
  const windows = await selectWindows(db, id);
  return {
    id: row.id,
    productId: row.product_id,
    productName: row.product_name,
    audience: row.audience,
    count: row.voucher_count,
    validUntil: row.valid_until,
    retailPriceUsd: row.retail_price_usd,
    priceUsd: row.price_usd,
    benefitMonths: row.benefit_months,
    usageUnitLabel: row.usage_unit_label,
    createdAt: row.created_at,
    active: row.active,
    expired: row.expired,
    redeemed: row.redeemed,
    voided: row.voided,
    windows,
    left: windows.claim === null && windows.buy === null ? null : row.left_in_windows,
  };
}
