import type { ChainHead } from "../domain/chain.ts";
import type { Hold } from "../domain/hold.ts";
import type { StoredStatus, VoucherType } from "../domain/voucher.ts";
import type { Queryable, Transaction } from "./pool.ts";
import { bind, loadStatements, type Writes } from "./statements.ts";

const sql = loadStatements(new URL("./vouchers.sql", import.meta.url), [
  "resolve_vouchers",
  "lock_free_vouchers",
  "lock_voucher",
  "read_locked_vouchers",
  "advance_chains",
  "redeem_vouchers",
  "void_voucher",
  "find_voucher_in_organization",
  "find_last_of_next",
  "select_chain_heads_of_range",
  "find_chain_head",
  "lock_expired_batch",
  "lock_unrecorded_expiries",
  "advance_expiry",
  "estimate_voucher_count",
]);

/** How a partner names a voucher: by normalised code or by ticket, one of them null (both: nothing matches). */
export interface WantedVoucher {
  organizationId: string;
  codeKey: string | null;
  ticket: string | null;
  /** A reference to look for in the same snapshot, or null. */
  externalRef: string | null;
}

/** A voucher with what was promised at issue, as partners see it. Prices are US dollars. */
export interface Voucher {
  id: string;
  code: string;
  serial: number;
  status: StoredStatus;
  redeemedAt: Date | null;
  validUntil: Date;
  retailPriceUsd: number;
  priceUsd: number;
  benefitMonths: number;
  usageUnitLabel: string | null;
  productName: string;
  productKey: string;
  type: VoucherType;
  brand: string;
}

/** What one snapshot says about one wanted voucher. */
export interface ResolvedVoucher {
  /** The database's clock. */
  now: Date;
  voucher: Voucher | null;
  /** The hold that is live at `now`. */
  hold: Hold | null;
  /** Whether the wanted `externalRef` is confirmed. */
  confirmed: boolean;
}

interface HoldColumns {
  hold_ticket: string | null;
  hold_key_id: string;
  hold_started_at: Date;
  hold_expires_at: Date;
  hold_token_secret_id: string;
}

interface ResolvedRow extends HoldColumns {
  n: number;
  now: Date;
  voucher_id: string | null;
  code: string;
  serial: number;
  status: StoredStatus;
  redeemed_at: Date | null;
  valid_until: Date;
  retail_price_usd: number;
  price_usd: number;
  benefit_months: number;
  usage_unit_label: string | null;
  product_name: string;
  product_key: string;
  type: VoucherType;
  brand: string;
  confirmed: boolean;
}

/** Resolves many wanted vouchers in one statement; results are in the order of `wanted`. */
export async function resolveVouchers(db: Queryable, wanted: readonly WantedVoucher[]): Promise<ResolvedVoucher[]> {
  const { rows } = await db.query<ResolvedRow>(
    bind(sql.resolve_vouchers, [
      wanted.map((entry) => entry.organizationId),
      wanted.map((entry) => entry.codeKey),
      wanted.map((entry) => entry.ticket),
      wanted.map((entry) => entry.externalRef),
    ]),
  );
  if (rows.length !== wanted.length)
    throw new Error(`${wanted.length} vouchers were asked for, ${rows.length} rows came`);
  const resolved: ResolvedVoucher[] = new Array(wanted.length);
  for (const row of rows) {
    resolved[row.n] = { now: row.now, voucher: toVoucher(row), hold: toHold(row), confirmed: row.confirmed };
  }
  return resolved;
}

function toVoucher(row: ResolvedRow): Voucher | null {
  if (row.voucher_id === null) return null;
  return {
    id: row.voucher_id,
    code: row.code,
    serial: row.serial,
    status: row.status,
    redeemedAt: row.redeemed_at,
    validUntil: row.valid_until,
    retailPriceUsd: row.retail_price_usd,
    priceUsd: row.price_usd,
    benefitMonths: row.benefit_months,
    usageUnitLabel: row.usage_unit_label,
    productName: row.product_name,
    productKey: row.product_key,
    type: row.type,
    brand: row.brand,
  };
}

function toHold(row: HoldColumns): Hold | null {
  if (row.hold_ticket === null) return null;
  return {
    ticket: row.hold_ticket,
    keyId: row.hold_key_id,
    startedAt: row.hold_started_at,
    expiresAt: row.hold_expires_at,
    tokenSecretId: row.hold_token_secret_id,
  };
}

/** Locks those of the vouchers that are free, in id order, without waiting; returns the ids that are locked now. */
export async function lockFreeVouchers(tx: Transaction, voucherIds: readonly string[]): Promise<Set<string>> {
  const { rows } = await tx.query<{ id: string }>(bind(sql.lock_free_vouchers, [voucherIds]));
  return new Set(rows.map((row) => row.id));
}

/**
 * Locks one voucher, waiting up to the transaction's `lock_timeout`; returns whether it exists.
 * @throws DatabaseError 55P03 when the wait is over.
 */
export async function lockVoucher(tx: Transaction, voucherId: string): Promise<boolean> {
  const { rowCount } = await tx.query(bind(sql.lock_voucher, [voucherId]));
  return rowCount === 1;
}

/** A voucher whose row this transaction has locked. */
export interface LockedVoucher extends ChainHead {
  id: string;
  organizationId: string;
  code: string;
  serial: number;
  status: StoredStatus;
  validUntil: Date;
  retailPriceUsd: number;
  priceUsd: number;
  /** The reservation row in state Live, even past its time. */
  hold: Hold | null;
}

interface LockedRow extends HoldColumns {
  now: Date;
  voucher_id: string;
  organization_id: string;
  code: string;
  serial: number;
  status: StoredStatus;
  last_sequence: number;
  sealed_sequence: number;
  sealed_hash: string | null;
  valid_until: Date;
  retail_price_usd: number;
  price_usd: number;
}

/** Vouchers, by id, and the time that decides and dates everything that a transaction does with them. */
export interface LockedVouchers {
  now: Date;
  vouchers: Map<string, LockedVoucher>;
}

/**
 * Reads vouchers that this transaction has locked in an earlier statement, and the time. Ids must be unique and at least one; those
 * of no voucher are left out.
 */
export async function readLockedVouchers(tx: Transaction, voucherIds: readonly string[]): Promise<LockedVouchers> {
  const { rows } = await tx.query<LockedRow>(bind(sql.read_locked_vouchers, [voucherIds]));
  const first = rows[0];
  if (first === undefined) throw new Error("there is no such voucher");
  const vouchers = new Map(
    rows.map((row) => [
      row.voucher_id,
      {
        id: row.voucher_id,
        organizationId: row.organization_id,
        code: row.code,
        serial: row.serial,
        status: row.status,
        lastSequence: row.last_sequence,
        sealedSequence: row.sealed_sequence,
        sealedHash: row.sealed_hash,
        validUntil: row.valid_until,
        retailPriceUsd: row.retail_price_usd,
        priceUsd: row.price_usd,
        hold: toHold(row),
      },
    ]),
  );
  return { now: first.now, vouchers };
}

/** A chain head that moves from where it was read to where the sealing left it. */
export interface ChainAdvance {
  voucherId: string;
  lastSequenceBefore: number;
  after: ChainHead;
}

/** Writes of moved chain heads of locked vouchers. */
export function advanceChains(advances: readonly ChainAdvance[]): Writes {
  if (advances.length === 0) return [];
  return [
    bind(sql.advance_chains, [
      advances.map((advance) => advance.voucherId),
      advances.map((advance) => advance.lastSequenceBefore),
      advances.map((advance) => advance.after.lastSequence),
      advances.map((advance) => advance.after.sealedSequence),
      advances.map((advance) => advance.after.sealedHash),
    ]),
  ];
}

/** Writes that set locked, Active vouchers to Redeemed; their chains are sealed up to the new head. */
export function redeemVouchers(advances: readonly ChainAdvance[], redeemedAt: Date): Writes {
  if (advances.length === 0) return [];
  return [
    bind(sql.redeem_vouchers, [
      advances.map((advance) => advance.voucherId),
      advances.map((advance) => advance.lastSequenceBefore),
      advances.map((advance) => advance.after.lastSequence),
      advances.map((advance) => advance.after.sealedHash),
      redeemedAt,
    ]),
  ];
}

/** Writes that set a locked, Active voucher to Voided and count the event that must say so. */
export function voidVoucherRow(voucherId: string, lastSequenceBefore: number): Writes {
  return [bind(sql.void_voucher, [voucherId, lastSequenceBefore])];
}

/** A voucher's id by its normalised code, or null. */
export async function findVoucherInOrganization(
  db: Queryable,
  organizationId: string,
  codeKey: string | null,
): Promise<string | null> {
  const { rows } = await db.query<{ id: string }>(bind(sql.find_voucher_in_organization, [organizationId, codeKey]));
  return rows[0]?.id ?? null;
}

interface HeadRow {
  voucher_id: string;
  last_sequence: number;
  sealed_sequence: number;
  sealed_hash: string | null;
}

function toHead(row: HeadRow): ChainHead & { voucherId: string } {
  return {
    voucherId: row.voucher_id,
    lastSequence: row.last_sequence,
    sealedSequence: row.sealed_sequence,
    sealedHash: row.sealed_hash,
  };
}

/** The last of the next `limit` vouchers in id order behind `afterId`, or null when there is none. */
export async function findLastOfNext(db: Queryable, afterId: string, limit: number): Promise<string | null> {
  const { rows } = await db.query<{ last_id: string | null }>(bind(sql.find_last_of_next, [afterId, limit]));
  return rows[0]?.last_id ?? null;
}

/** The chain heads of the vouchers behind `afterId` up to `lastId`, in id order. */
export async function selectChainHeadsOfRange(
  db: Queryable,
  afterId: string,
  lastId: string,
): Promise<(ChainHead & { voucherId: string })[]> {
  const { rows } = await db.query<HeadRow>(bind(sql.select_chain_heads_of_range, [afterId, lastId]));
  return rows.map(toHead);
}

/** A voucher's chain head, or null when there is no such voucher. */
export async function findChainHead(
  db: Queryable,
  voucherId: string,
): Promise<(ChainHead & { voucherId: string }) | null> {
  const { rows } = await db.query<HeadRow>(bind(sql.find_chain_head, [voucherId]));
  return rows[0] === undefined ? null : toHead(rows[0]);
}

/** A batch whose vouchers are past their time, locked by this transaction. */
export interface ExpiredBatch {
  batchId: string;
  /** Serial up to which every expiry is recorded. */
  recordedTo: number;
  voucherCount: number;
}

/** Locks the next batch with expiries to record, other than `except`; null when there is none that nobody works on. */
export async function lockExpiredBatch(tx: Transaction, except: readonly string[]): Promise<ExpiredBatch | null> {
  const { rows } = await tx.query<{ batch_id: string; expiry_recorded_to: number; voucher_count: number }>(
    bind(sql.lock_expired_batch, [except]),
  );
  const row = rows[0];
  if (row === undefined) return null;
  return { batchId: row.batch_id, recordedTo: row.expiry_recorded_to, voucherCount: row.voucher_count };
}

/** Locks the vouchers of a serial range whose expiry is to be recorded and that nobody else has locked. */
export async function lockUnrecordedExpiries(
  tx: Transaction,
  batchId: string,
  afterSerial: number,
  lastSerial: number,
): Promise<string[]> {
  const { rows } = await tx.query<{ id: string }>(
    bind(sql.lock_unrecorded_expiries, [batchId, afterSerial, lastSerial]),
  );
  return rows.map((row) => row.id);
}

/** Moves a locked batch's mark over a serial range, up to the first voucher that was passed over; returns the mark. */
export async function advanceExpiry(
  tx: Transaction,
  batchId: string,
  afterSerial: number,
  lastSerial: number,
): Promise<number> {
  const { rows } = await tx.query<{ expiry_recorded_to: number }>(
    bind(sql.advance_expiry, [batchId, afterSerial, lastSerial]),
  );
  if (rows[0] === undefined) throw new Error(`the locked batch ${batchId} could not be moved on`);
  return rows[0].expiry_recorded_to;
}

/** About how many vouchers there are. */
export async function estimateVoucherCount(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ estimate: number }>(bind(sql.estimate_voucher_count, []));
  return Math.max(0, rows[0]?.estimate ?? 0);
}
