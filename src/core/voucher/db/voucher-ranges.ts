import { boolean, integer, orNull, real, text, textOf, timestamptz } from "../../../platform/db/columns.ts";
import type { Queryable } from "../../../platform/db/pool.ts";
import { Statements } from "../../../platform/db/statements.ts";
import type { StoredStatus } from "../voucher.ts";
import { CHAIN_HEAD } from "./vouchers.ts";

export const sql = new Statements(new URL("./voucher-ranges.sql", import.meta.url));

export const selectVouchersOfBatch = sql.rows("select_vouchers_of_batch", {
  id: text,
  code: text,
  serial: integer,
  status: textOf<StoredStatus>(),
})<[batchId: string, afterSerial: number, limit: number]>;
export const findVoucherInOrganization = sql.value("find_voucher_in_organization", { id: text })<
  [organizationId: string, codeKey: string | null]
>;
export const findRangeEnd = sql.requiredValue("find_range_end", { lastId: orNull(text) })<
  [afterId: string, limit: number]
>;
export const selectChainHeadsOfRange = sql.rows("select_chain_heads_of_range", { voucherId: text, ...CHAIN_HEAD })<
  [afterId: string, lastId: string]
>;
/** Null when every such batch is locked or there is none. Every expiry up to the serial `recordedTo` is recorded. */
export const lockExpiredBatch = sql.row("lock_expired_batch", {
  batchId: text,
  recordedTo: integer,
  voucherCount: integer,
})<[only: readonly string[] | null, except: readonly string[]]>;
export const lockUnrecordedExpiries = sql.values("lock_unrecorded_expiries", { id: text })<
  [batchId: string, afterSerial: number, lastSerial: number]
>;
export const advanceExpiry = sql.requiredValue("advance_expiry", { recordedTo: integer })<
  [batchId: string, afterSerial: number, lastSerial: number]
>;
export const estimateVoucherCount = sql.requiredValue("estimate_voucher_count", { estimate: real })<[]>;
export const selectOrganizationsWithBrands = sql.values("select_organizations_with_brands", { id: text })<[]>;
const findVouchers = sql.rows("find_vouchers", {
  now: timestamptz,
  sandbox: boolean,
  id: text,
  code: text,
  serial: integer,
  organizationId: text,
  batchId: text,
  status: textOf<StoredStatus>(),
  redeemedAt: orNull(timestamptz),
  validUntil: timestamptz,
  productName: text,
  productKey: text,
  brand: text,
  externalRef: orNull(text),
  redeemCode: orNull(text),
});

/** What a voucher is searched by. One field is not null, or the two fields `batchId` and `serial`. */
export interface VoucherCriteria {
  codeKey: string | null;
  ticket: string | null;
  voucherId: string | null;
  externalRef: string | null;
  redeemCode: string | null;
  batchId: string | null;
  serial: number | null;
}

/** At most `limit` vouchers of these organizations that meet the criteria, with the database's time. */
export function selectVouchersBy(
  db: Queryable,
  organizationIds: readonly string[],
  by: VoucherCriteria,
  limit: number,
) {
  const { codeKey, ticket, voucherId, externalRef, redeemCode, batchId, serial } = by;
  const values = [codeKey, ticket, voucherId, externalRef, redeemCode, batchId, serial];
  return findVouchers(db, organizationIds, ...values, limit);
}
