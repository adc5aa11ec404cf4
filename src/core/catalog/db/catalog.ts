import { markSandbox } from "../../../platform/api/fields.ts";
import {
  bigint,
  boolean,
  integer,
  numeric,
  orNull,
  type Row,
  text,
  textOf,
  timestamptz,
} from "../../../platform/db/columns.ts";
import type { Queryable } from "../../../platform/db/pool.ts";
import { Statements } from "../../../platform/db/statements.ts";
import type { Audience, VoucherType, Window, WindowKind } from "../../voucher/voucher.ts";

/** Roles of an organization's members. */
export const MEMBER_ROLES = ["owner", "employee"] as const;
export type MemberRole = (typeof MEMBER_ROLES)[number];

/** The properties that all vouchers of a new batch have in common. Prices are US dollars. */
const BATCH_TERMS = {
  organizationId: text,
  sandbox: boolean,
  productKey: text,
  retailPriceUsd: numeric,
  priceUsd: numeric,
  /** The time of the issue on the database's clock. */
  issuedAt: timestamptz,
};
export type BatchTerms = Row<typeof BATCH_TERMS>;

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
  /** The time since which the batch is suspended. Null if it is not suspended. */
  suspendedAt: orNull(timestamptz),
  suspensionReason: orNull(text),
  active: bigint,
  suspended: bigint,
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
  /** 0 means that the product states no duration. */
  benefitMonths: integer,
  usageUnitLabel: orNull(text),
};
type NewProduct = Row<typeof PRODUCT>;

/** `sandbox`: whether the brand's organization is a sandbox. */
const BRAND = { id: text, name: text, organizationId: text, sandbox: boolean };

const ORGANIZATION_NAME = { id: text, name: text, sandbox: boolean };
export type OrganizationName = Row<typeof ORGANIZATION_NAME>;

const BATCH_OF_ORGANIZATION = {
  id: text,
  productName: text,
  count: integer,
  validUntil: timestamptz,
  isValid: boolean,
  hasWindow: boolean,
  /**
   * Vouchers that users can still acquire in the batch's windows, counted up to `countedMax`. 0 while the batch is
   * suspended. Includes vouchers of an expired batch, and vouchers that were suspended individually.
   */
  left: integer,
};
export type BatchOfOrganization = Row<typeof BATCH_OF_ORGANIZATION>;

/** An entity and the entities above it, from the organization down. A field that does not apply is null. */
const LINEAGE = {
  organizationId: text,
  organizationName: text,
  sandbox: boolean,
  timeZone: text,
  brandId: orNull(text),
  brandName: orNull(text),
  productId: orNull(text),
  productName: orNull(text),
  batchId: orNull(text),
  voucherCount: orNull(integer),
  validUntil: orNull(timestamptz),
  priceUsd: orNull(numeric),
  voucherId: orNull(text),
  code: orNull(text),
  contractId: orNull(text),
  userId: orNull(text),
  contractStatus: orNull(text),
  contractEndsAt: orNull(timestamptz),
  keyId: orNull(text),
  keyLabel: orNull(text),
  webhookId: orNull(text),
  url: orNull(text),
};
export type Lineage = Row<typeof LINEAGE>;

export const sql = new Statements(new URL("./catalog.sql", import.meta.url));

/** An organization can never change between live and sandbox. */
export const insertOrganization = sql.execute("insert_organization", { id: text, name: text, sandbox: boolean });
export const insertMember = sql.execute("insert_member", {
  organizationId: text,
  userId: text,
  role: textOf<MemberRole>(),
});
export const findOrganization = sql.row(
  "find_organization",
  { name: text, sandbox: boolean, timeZone: text },
  { id: text },
);
export const updateTimeZone = sql.executeOne("update_time_zone", { id: text, timeZone: text });
export const findNamesake = sql.value("find_namesake", { id: text }, { parentId: orNull(text), name: text });
export const isPast = sql.requiredValue("is_past", { past: boolean }, { at: timestamptz });
export const insertBrand = sql.execute("insert_brand", { id: text, organizationId: text, name: text });
/** Returns false when there is no such brand. */
export const updateBrandName = sql.executeOne("update_brand_name", { id: text, name: text });
export const countIssuedVouchers = sql.requiredValue("count_issued_vouchers", { count: bigint });
export const findBatchSize = sql.value("find_batch_size", { count: integer }, { id: text });
/** Moves the end of a batch, but not of its vouchers, to a later time. False if it already ends then or later. */
export const extendBatchRow = sql.executeOne("extend_batch", { id: text, validUntil: timestamptz });
export const selectOrganizationNames = sql.rows("select_organization_names", ORGANIZATION_NAME, { limit: integer });
export const selectBrandsOfOrganization = sql.rows("select_brands_of_organization", BRAND, { organizationId: text });
export const selectBatchesOfOrganization = sql.rows("select_batches_of_organization", BATCH_OF_ORGANIZATION, {
  organizationId: text,
  before: orNull(text),
  limit: integer,
  countedMax: integer,
});
export const findLineage = sql.row("find_lineage", LINEAGE, { id: text });
const insertProductRow = sql.execute("insert_product", {
  id: text,
  brandId: text,
  key: text,
  name: text,
  type: text,
  retailPriceUsd: numeric,
  priceUsd: numeric,
  benefitMonths: integer,
  usageUnitLabel: orNull(text),
});
const insertBatchRow = sql.row("insert_batch", BATCH_TERMS, {
  id: text,
  productId: text,
  audience: text,
  voucherCount: integer,
  validUntil: timestamptz,
});
const findBatchRow = sql.row("find_batch", { ...BATCH, left: bigint, sandbox: boolean }, { id: text });
const selectWindowRows = sql.rows(
  "select_windows",
  {
    kind: textOf<WindowKind>(),
    opensAt: orNull(timestamptz),
    closesAt: orNull(timestamptz),
  },
  { batchId: text },
);

export async function insertProduct(db: Queryable, product: NewProduct): Promise<void> {
  const { id, brandId, key, name, type, retailPriceUsd, priceUsd, benefitMonths, usageUnitLabel } = product;
  await insertProductRow(db, { id, brandId, key, name, type, retailPriceUsd, priceUsd, benefitMonths, usageUnitLabel });
}

/** A batch to insert. Its prices and benefit are copied from the product. */
interface NewBatch {
  id: string;
  productId: string;
  audience: Audience;
  count: number;
  validUntil: Date;
}

/** Inserts a batch and returns its terms, or null when there is no such product. */
export function insertBatch(db: Queryable, batch: NewBatch): Promise<BatchTerms | null> {
  return insertBatchRow(db, {
    id: batch.id,
    productId: batch.productId,
    audience: batch.audience,
    voucherCount: batch.count,
    validUntil: batch.validUntil,
  });
}

/** The batch's window of each kind, or null if the batch has none of this kind. */
export async function selectWindows(db: Queryable, batchId: string): Promise<Record<WindowKind, Window | null>> {
  const rows = await selectWindowRows(db, batchId);
  const windows = new Map<WindowKind, Window>(rows.map(({ kind, ...window }) => [kind, window]));
  return { claim: windows.get("claim") ?? null, buy: windows.get("buy") ?? null };
}

/** A batch as an operator sees it, with the number of its vouchers in each status. */
export interface BatchSummary extends Row<typeof BATCH> {
  /** Present for a batch of a sandbox organization. */
  sandbox?: true;
  windows: Record<WindowKind, Window | null>;
  /** Vouchers that users can still acquire in the windows, including reserved ones. Null without a window. */
  left: number | null;
}

/** A batch with the number of its vouchers in each status, or null. Takes seconds for a million vouchers. */
export async function findBatch(db: Queryable, id: string): Promise<BatchSummary | null> {
  const row = await findBatchRow(db, id);
  if (row === null) return null;
  const { left, sandbox, ...batch } = row;
  // The windows cannot change between the two statements, because a batch gets its windows only when it is issued.
  const windows = await selectWindows(db, id);
  const hasWindow = windows.claim !== null || windows.buy !== null;
  return { ...batch, ...markSandbox(sandbox), windows, left: hasWindow ? left : null };
}

/** Gives a batch a window. */
export const insertWindow = sql.execute("insert_window", {
  batchId: text,
  kind: textOf<WindowKind>(),
  opensAt: orNull(timestamptz),
  closesAt: orNull(timestamptz),
});
