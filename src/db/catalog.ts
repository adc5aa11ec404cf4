import { markSandbox } from "../contract/fields.ts";
import type { ContractStatus } from "../domain/audience.ts";
import type { Window, WindowKind } from "../domain/offer.ts";
import type { Audience, VoucherType } from "../domain/voucher.ts";
import { bigint, boolean, integer, numeric, orNull, type Row, text, textOf, timestamptz } from "./columns.ts";
import type { Queryable } from "./pool.ts";
import { execute, loadStatements, readRequiredRow, readRow, readRows } from "./statements.ts";

/** What the vouchers of a new batch have in common. Prices are US dollars. */
const BATCH_TERMS = {
  organizationId: text,
  /** Whether the organization is a sandbox. */
  sandbox: boolean,
  productKey: text,
  retailPriceUsd: numeric,
  priceUsd: numeric,
  /** The time by the database's clock. */
  issuedAt: timestamptz,
};

const BATCH = {
  id: text,
  productId: text,
  productName: text,
  audience: textOf<Audience>(),
  count: integer,
  validUntil: timestamptz,
  retailPriceUsd: numeric,
  priceUsd: numeric,
  benefitMonths: integer,
  usageUnitLabel: orNull(text),
  createdAt: timestamptz,
  active: bigint,
  expired: bigint,
  redeemed: bigint,
  voided: bigint,
};

/** A product. Prices are US dollars. */
export const PRODUCT = {
  id: text,
  brandId: text,
  key: text,
  name: text,
  type: textOf<VoucherType>(),
  retailPriceUsd: numeric,
  priceUsd: numeric,
  /** 0: the product states no duration. */
  benefitMonths: integer,
  usageUnitLabel: orNull(text),
};
export type NewProduct = Row<typeof PRODUCT>;

/** `sandbox`: whether its organization is a sandbox. */
const BRAND = { id: text, name: text, organizationId: text, sandbox: boolean };

const ORGANIZATION_NAME = { id: text, name: text, sandbox: boolean };

const BATCH_OF_ORGANIZATION = {
  id: text,
  productName: text,
  count: integer,
  validUntil: timestamptz,
  isValid: boolean,
  hasWindow: boolean,
  /** Vouchers that can still be acquired through the windows, counted up to 1 001. */
  left: integer,
};

/** An entity of the catalog with those that it belongs to. What does not apply is null. */
const PLACE = {
  organizationId: text,
  organizationName: text,
  sandbox: boolean,
  brandId: orNull(text),
  brandName: orNull(text),
  productId: orNull(text),
  productName: orNull(text),
  batchId: orNull(text),
  voucherCount: orNull(integer),
  validUntil: orNull(timestamptz),
  voucherId: orNull(text),
  code: orNull(text),
  contractId: orNull(text),
  userId: orNull(text),
  contractStatus: orNull(textOf<ContractStatus>()),
  contractEndsAt: orNull(timestamptz),
  keyId: orNull(text),
  keyLabel: orNull(text),
  webhookId: orNull(text),
  url: orNull(text),
};

export const sql = loadStatements(new URL("./catalog.sql", import.meta.url), {
  insert_organization: {},
  find_organization: { name: text, sandbox: boolean },
  find_namesake: { id: text },
  insert_brand: {},
  insert_product: {},
  insert_batch: BATCH_TERMS,
  count_issued_vouchers: { count: bigint },
  find_batch_size: { count: integer },
  select_windows: { kind: textOf<WindowKind>(), opensAt: orNull(timestamptz), closesAt: orNull(timestamptz) },
  find_batch: { ...BATCH, left: bigint, sandbox: boolean },
  find_place: PLACE,
  select_organization_names: ORGANIZATION_NAME,
  select_brands_of_organization: BRAND,
  select_batches_of_organization: BATCH_OF_ORGANIZATION,
});

/** Inserts an organization. It can never change between live and sandbox. */
export async function insertOrganization(db: Queryable, id: string, name: string, sandbox: boolean): Promise<void> {
  await execute(db, sql.insert_organization, [id, name, sandbox]);
}

/** An organization, or null. */
export function findOrganization(db: Queryable, id: string): Promise<{ name: string; sandbox: boolean } | null> {
  return readRow(db, sql.find_organization, [id]);
}

/**
 * Returns the id of the oldest entity with a name, ignoring case, or null: an organization if `parentId` is null, else a brand of that
 * organization or a product of that brand.
 */
export async function findNamesake(db: Queryable, parentId: string | null, name: string): Promise<string | null> {
  return (await readRow(db, sql.find_namesake, [parentId, name]))?.id ?? null;
}

export async function insertBrand(db: Queryable, id: string, organizationId: string, name: string): Promise<void> {
  await execute(db, sql.insert_brand, [id, organizationId, name]);
}

export async function insertProduct(db: Queryable, product: NewProduct): Promise<void> {
  await execute(db, sql.insert_product, [
    product.id,
    product.brandId,
    product.key,
    product.name,
    product.type,
    product.retailPriceUsd,
    product.priceUsd,
    product.benefitMonths,
    product.usageUnitLabel,
  ]);
}

/** A batch to insert. Its terms are copied from the product. */
interface NewBatch {
  id: string;
  productId: string;
  audience: Audience;
  count: number;
  validUntil: Date;
}

export type BatchTerms = Row<typeof BATCH_TERMS>;

/** Inserts a batch and returns its terms, or null when there is no such product. */
export function insertBatch(db: Queryable, batch: NewBatch): Promise<BatchTerms | null> {
  return readRow(db, sql.insert_batch, [batch.id, batch.productId, batch.audience, batch.count, batch.validUntil]);
}

/** How many vouchers there are. */
export async function countIssuedVouchers(db: Queryable): Promise<number> {
  return (await readRequiredRow(db, sql.count_issued_vouchers, [])).count;
}

/** How many vouchers a batch has, or null when there is no such batch. */
export async function findBatchSize(db: Queryable, id: string): Promise<number | null> {
  return (await readRow(db, sql.find_batch_size, [id]))?.count ?? null;
}

/** A batch's window of each kind; null for a kind that it does not have. */
export async function selectWindows(db: Queryable, batchId: string): Promise<Record<WindowKind, Window | null>> {
  const rows = await readRows(db, sql.select_windows, [batchId]);
  const windowOf = (kind: WindowKind): Window | null => {
    const row = rows.find((window) => window.kind === kind);
    return row === undefined ? null : { opensAt: row.opensAt, closesAt: row.closesAt };
  };
  return { claim: windowOf("claim"), buy: windowOf("buy") };
}

/** A batch as an operator sees it, with the number of its vouchers in each status. */
export interface BatchSummary extends Row<typeof BATCH> {
  /** Present for a batch of a sandbox organization. */
  sandbox?: true;
  windows: Record<WindowKind, Window | null>;
  /** Vouchers that can still be acquired through the windows, reserved ones included; null when there is no window. */
  left: number | null;
}

/** A batch with the number of its vouchers in each status, or null. Takes seconds for a million vouchers. */
export async function findBatch(db: Queryable, id: string): Promise<BatchSummary | null> {
  const row = await readRow(db, sql.find_batch, [id]);
  if (row === null) return null;
  const { left, sandbox, ...batch } = row;
  // A second statement finds the same windows, because a batch gets them when it is issued.
  const windows = await selectWindows(db, id);
  return {
    ...batch,
    ...markSandbox(sandbox),
    windows,
    left: windows.claim === null && windows.buy === null ? null : left,
  };
}

/** A brand with its organization. */
export type Brand = Row<typeof BRAND>;

/** An organization as a list of choices shows it. */
export type OrganizationName = Row<typeof ORGANIZATION_NAME>;

/** The newest `limit` organizations. */
export function selectOrganizationNames(db: Queryable, limit: number): Promise<OrganizationName[]> {
  return readRows(db, sql.select_organization_names, [limit]);
}

/** An organization's brands, oldest first. */
export function selectBrandsOfOrganization(db: Queryable, organizationId: string): Promise<Brand[]> {
  return readRows(db, sql.select_brands_of_organization, [organizationId]);
}

/** A batch in an organization's list. */
export type BatchOfOrganization = Row<typeof BATCH_OF_ORGANIZATION>;

/** At most `limit` batches of an organization, newest first: those older than the batch `before`, or the newest ones if it is null. */
export function selectBatchesOfOrganization(
  db: Queryable,
  organizationId: string,
  before: string | null,
  limit: number,
): Promise<BatchOfOrganization[]> {
  return readRows(db, sql.select_batches_of_organization, [organizationId, before, limit]);
}

export type Place = Row<typeof PLACE>;

/** The entity with an id, of any kind that {@link PLACE} names, or null. */
export function findPlace(db: Queryable, id: string): Promise<Place | null> {
  return readRow(db, sql.find_place, [id]);
}
