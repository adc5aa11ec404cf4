import type { ChainHead } from "../domain/chain.ts";
import type { StoredStatus } from "../domain/voucher.ts";
import { boolean, integer, orNull, type Row, real, text, textOf, timestamptz } from "./columns.ts";
import type { Queryable, Transaction } from "./pool.ts";
import { loadStatements, readRequiredRow, readRow, readRows } from "./statements.ts";
import { CHAIN_HEAD } from "./vouchers.ts";

const VOUCHER_OF_BATCH = { id: text, code: text, serial: integer, status: textOf<StoredStatus>() };

/** A voucher as operators find it, with its redemption. */
const FOUND_VOUCHER = {
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
};

const EXPIRED_BATCH = {
  batchId: text,
  /** Serial up to which every expiry is recorded. */
  recordedTo: integer,
  voucherCount: integer,
};

export const sql = loadStatements(new URL("./voucher-ranges.sql", import.meta.url), {
  select_vouchers_of_batch: VOUCHER_OF_BATCH,
  find_voucher_in_organization: { id: text },
  find_vouchers: { now: timestamptz, sandbox: boolean, ...FOUND_VOUCHER },
  find_range_end: { lastId: orNull(text) },
  select_chain_heads_of_range: { voucherId: text, ...CHAIN_HEAD },
  lock_expired_batch: EXPIRED_BATCH,
  lock_unrecorded_expiries: { id: text },
  advance_expiry: { recordedTo: integer },
  estimate_voucher_count: { estimate: real },
});

/** At most `limit` vouchers of a batch after a serial, in order of serials. */
export function selectVouchersOfBatch(
  db: Queryable,
  batchId: string,
  afterSerial: number,
  limit: number,
): Promise<Row<typeof VOUCHER_OF_BATCH>[]> {
  return readRows(db, sql.select_vouchers_of_batch, [batchId, afterSerial, limit]);
}

/** A voucher's id by its normalized code, or null. */
export async function findVoucherInOrganization(
  db: Queryable,
  organizationId: string,
  codeKey: string | null,
): Promise<string | null> {
  return (await readRow(db, sql.find_voucher_in_organization, [organizationId, codeKey]))?.id ?? null;
}

/** What an operator searches a voucher by. One field is not null, or the two fields `batchId` and `serial`. */
export interface VoucherCriteria {
  codeKey: string | null;
  ticket: string | null;
  voucherId: string | null;
  externalRef: string | null;
  redeemCode: string | null;
  batchId: string | null;
  serial: number | null;
}

/** At most `limit` vouchers that meet the criteria, in one organization or (null) in all, with the database's time. For operators only. */
export function selectVouchersBy(
  db: Queryable,
  organizationId: string | null,
  criteria: VoucherCriteria,
  limit: number,
): Promise<Row<typeof sql.find_vouchers.columns>[]> {
  const { codeKey, ticket, voucherId, externalRef, redeemCode, batchId, serial } = criteria;
  return readRows(db, sql.find_vouchers, [
    organizationId,
    codeKey,
    ticket,
    voucherId,
    externalRef,
    redeemCode,
    batchId,
    serial,
    limit,
  ]);
}

/** The last of the next `limit` vouchers in id order after `afterId`, or null when there is none. */
export async function findRangeEnd(db: Queryable, afterId: string, limit: number): Promise<string | null> {
  return (await readRequiredRow(db, sql.find_range_end, [afterId, limit])).lastId;
}

/** The chain heads of the vouchers with ids after `afterId` and up to `lastId`, in id order. */
export function selectChainHeadsOfRange(
  db: Queryable,
  afterId: string,
  lastId: string,
): Promise<(ChainHead & { voucherId: string })[]> {
  return readRows(db, sql.select_chain_heads_of_range, [afterId, lastId]);
}

/** A batch past its `validUntil`, locked by this transaction. */
type ExpiredBatch = Row<typeof EXPIRED_BATCH>;

/**
 * Locks the next batch with expiries to record, one of `only` (null: any) and none of `except`; null when every such batch is locked or
 * there is none.
 */
export function lockExpiredBatch(
  tx: Transaction,
  only: readonly string[] | null,
  except: readonly string[],
): Promise<ExpiredBatch | null> {
  return readRow(tx, sql.lock_expired_batch, [except, only]);
}

/** Locks the Active vouchers of a serial range whose expiry is not recorded, without waiting for locked ones; returns their ids. */
export async function lockUnrecordedExpiries(
  tx: Transaction,
  batchId: string,
  afterSerial: number,
  lastSerial: number,
): Promise<string[]> {
  const rows = await readRows(tx, sql.lock_unrecorded_expiries, [batchId, afterSerial, lastSerial]);
  return rows.map((row) => row.id);
}

/** Advances a locked batch's `recordedTo` to the last serial before the first unrecorded expiry in the range; returns it. */
export async function advanceExpiry(
  tx: Transaction,
  batchId: string,
  afterSerial: number,
  lastSerial: number,
): Promise<number> {
  return (await readRequiredRow(tx, sql.advance_expiry, [batchId, afterSerial, lastSerial])).recordedTo;
}

/** About how many vouchers there were at the last ANALYZE; 0 before the first one. */
export async function estimateVoucherCount(db: Queryable): Promise<number> {
  return Math.max(0, (await readRequiredRow(db, sql.estimate_voucher_count, [])).estimate);
}
