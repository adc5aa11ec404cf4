import {
  arrayOf,
  bigint,
  boolean,
  integer,
  numeric,
  orNull,
  outerJoined,
  type Row,
  text,
  textOf,
  timestamptz,
} from "../../../platform/db/columns.ts";
import { timeOf } from "../../../platform/db/database-clock.ts";
import type { Queryable, Transaction } from "../../../platform/db/pool.ts";
import { columnsOf, type PreparedStatements, Statements } from "../../../platform/db/statements.ts";
import type { Reservation } from "../reservation.ts";
import type { ChainHead, StoredStatus, Suspension, VoucherType } from "../voucher.ts";

/** A voucher with its prices and benefit, as partners see it. Prices are US dollars. */
const VOUCHER = {
  id: text,
  code: text,
  serial: integer,
  status: textOf<StoredStatus>(),
  redeemedAt: orNull(timestamptz),
  validUntil: timestamptz,
  /** Whether the voucher or its batch is suspended. */
  suspended: boolean,
  retailPriceUsd: numeric,
  priceUsd: numeric,
  benefitMonths: integer,
  usageUnitLabel: orNull(text),
  productName: text,
  productKey: text,
  type: textOf<VoucherType>(),
  brand: text,
};
export type Voucher = Row<typeof VOUCHER>;

const RESERVATION = outerJoined({
  ticket: text,
  keyId: text,
  startedAt: timestamptz,
  expiresAt: timestamptz,
  tokenSecretId: text,
});

export const CHAIN_HEAD = { lastSequence: integer, sealedSequence: integer, sealedHash: orNull(text) };

/** A voucher whose row this transaction has locked. */
const LOCKED_VOUCHER = {
  id: text,
  organizationId: text,
  code: text,
  codeKey: text,
  serial: integer,
  status: textOf<StoredStatus>(),
  ...CHAIN_HEAD,
  validUntil: timestamptz,
  /** Whether the voucher or its batch is suspended. */
  suspended: boolean,
  /** The state of suspension in the voucher's history, which may still lack the event about the batch. */
  suspension: orNull(textOf<Suspension>()),
  /** The time since which the batch is suspended. Null if it is not suspended. */
  batchSuspendedAt: orNull(timestamptz),
  retailPriceUsd: numeric,
  priceUsd: numeric,
  sandbox: boolean,
  /** The reservation row in state Live, even after its end. */
  reservation: RESERVATION,
};
export type LockedVoucher = Row<typeof LOCKED_VOUCHER>;

export const sql = new Statements(new URL("./vouchers.sql", import.meta.url));

/** Returns whether the voucher exists. @throws DatabaseError 55P03 when it waits longer than `lock_timeout`. */
export const lockVoucher = sql.executeOne("lock_voucher", { voucherId: text });
/** The chain heads of vouchers, in no particular order. Ids without a voucher are left out. */
export const readChainHeads = sql.rows("read_chain_heads", { id: text, ...CHAIN_HEAD }, { voucherId: arrayOf(text) });
const selectResolved = sql.rows(
  "resolve_vouchers",
  {
    n: integer,
    clock: outerJoined({ now: timestamptz, closedUntil: timestamptz }),
    generation: bigint,
    seenEnd: bigint,
    voucher: outerJoined(VOUCHER),
    reservation: RESERVATION,
    redeemed: outerJoined({ voucherId: text, attemptId: text, redeemCode: text, redeemedAt: timestamptz }),
  },
  {
    organizationId: arrayOf(text),
    codeKey: arrayOf(orNull(text)),
    ticket: arrayOf(orNull(text)),
    externalRef: arrayOf(orNull(text)),
  },
);
export const selectVoucherLockers = sql.values(
  "select_voucher_lockers",
  { id: text },
  { among: orNull(arrayOf(text)) },
);
const lockFree = sql.values("lock_free_vouchers", { id: text }, { voucherId: arrayOf(text) });
const selectLocked = sql.rows(
  "read_locked_vouchers",
  {
    now: timestamptz,
    closedUntil: timestamptz,
    ...LOCKED_VOUCHER,
  },
  { voucherId: arrayOf(text) },
);
const redeemRows = sql.prepare("redeem_vouchers", {
  voucherId: arrayOf(text),
  lastSequenceBefore: arrayOf(integer),
  lastSequence: arrayOf(integer),
  sealedHash: arrayOf(orNull(text)),
  redeemedAt: timestamptz,
});
const ADVANCE = {
  voucherId: arrayOf(text),
  lastSequenceBefore: arrayOf(integer),
  lastSequence: arrayOf(integer),
  sealedSequence: arrayOf(integer),
  sealedHash: arrayOf(orNull(text)),
};
const advanceRows = sql.prepare("advance_chains", ADVANCE);
const voidRows = sql.prepare("void_vouchers", ADVANCE);
const extendRows = sql.prepare("extend_vouchers", { ...ADVANCE, validUntil: timestamptz });
const suspendRows = sql.prepare("suspend_vouchers", { ...ADVANCE, suspension: orNull(textOf<Suspension>()) });

/** A voucher named by its normalized code or by a ticket. The other is null. If both are null, nothing matches. */
export interface WantedVoucher {
  organizationId: string;
  codeKey: string | null;
  ticket: string | null;
  /** A reference whose redemption is read in the same snapshot, or null. */
  externalRef: string | null;
}

/** One wanted voucher, as read in one snapshot. */
export interface ResolvedVoucher {
  /** The time on which decisions must be based. */
  now: Date;
  voucher: Voucher | null;
  /** The reservation that is live at `now`. */
  reservation: Reservation | null;
  /** The version of the wanted `externalRef` in `reference_ends`, or 0 if there is none. */
  seenEnd: number;
  generation: number;
  /** The redemption of the wanted `externalRef`. It may be of another voucher. */
  redeemed: { voucherId: string; attemptId: string; redeemCode: string; redeemedAt: Date } | null;
}

/** Resolves many wanted vouchers in one statement. The results are in the order of `wanted`. */
export async function resolveVouchers(db: Queryable, wanted: readonly WantedVoucher[]): Promise<ResolvedVoucher[]> {
  const columns = columnsOf(wanted, "organizationId", "codeKey", "ticket", "externalRef");
  const rows = await selectResolved(db, columns);
  if (rows.length !== wanted.length) throw new Error(`expected ${wanted.length} rows, got ${rows.length}`);
  const clock = rows.find(({ n }) => n === 0)?.clock;
  if (clock == null) throw new Error("no row has the time");
  const now = timeOf(db, clock.now, clock.closedUntil);
  const resolved: ResolvedVoucher[] = new Array(wanted.length);
  for (const row of rows) resolved[row.n] = { ...row, now };
  return resolved;
}

/** Locks the vouchers that no other transaction has locked, in id order, without waiting. Returns their ids. */
export async function lockFreeVouchers(tx: Transaction, voucherIds: readonly string[]): Promise<Set<string>> {
  return new Set(await lockFree(tx, voucherIds));
}

/** Vouchers by id, and the time that the transaction uses for all decisions and rows. */
export interface LockedVouchers {
  now: Date;
  vouchers: Map<string, LockedVoucher>;
}

/**
 * Reads the vouchers that this transaction has locked, and the database's time. Unknown ids are left out. The ids must
 * be distinct.
 * @throws Error when no id has a voucher.
 */
export async function readLockedVouchers(tx: Transaction, voucherIds: readonly string[]): Promise<LockedVouchers> {
  const rows = await selectLocked(tx, voucherIds);
  const first = rows[0];
  if (first === undefined) throw new Error("there is no such voucher");
  const { now, closedUntil } = first;
  return { now: timeOf(tx, now, closedUntil), vouchers: new Map(rows.map((row) => [row.id, row])) };
}

/** A chain head as it was read, and as it is to be written. */
export interface ChainAdvance {
  voucherId: string;
  lastSequenceBefore: number;
  after: ChainHead;
}

/** Columns for a statement: the vouchers, their chain heads as read, and the given fields of the new heads. */
function advanceColumns<Field extends keyof ChainHead>(advances: readonly ChainAdvance[], ...fields: readonly Field[]) {
  const heads = advances.map(({ after }) => after);
  return { ...columnsOf(advances, "voucherId", "lastSequenceBefore"), ...columnsOf(heads, ...fields) };
}

/** Statements that write the new chain heads of locked vouchers. */
export function advanceChains(advances: readonly ChainAdvance[]): PreparedStatements {
  if (advances.length === 0) return [];
  return [advanceRows(advanceColumns(advances, "lastSequence", "sealedSequence", "sealedHash"))];
}

/** Statements that set locked, Active vouchers to Redeemed. Their chains must be sealed up to the new head. */
export function redeemVouchers(advances: readonly ChainAdvance[], redeemedAt: Date): PreparedStatements {
  if (advances.length === 0) return [];
  return [redeemRows({ ...advanceColumns(advances, "lastSequence", "sealedHash"), redeemedAt })];
}

/** Statements that set locked, Active vouchers to Voided. The caller must insert the events up to the new heads. */
export function voidVouchers(advances: readonly ChainAdvance[]): PreparedStatements {
  if (advances.length === 0) return [];
  return [voidRows(advanceColumns(advances, "lastSequence", "sealedSequence", "sealedHash"))];
}

/** Statements that give locked, Active vouchers a later end. The caller must insert the events up to the new heads. */
export function extendVouchers(advances: readonly ChainAdvance[], validUntil: Date): PreparedStatements {
  if (advances.length === 0) return [];
  return [extendRows({ ...advanceColumns(advances, "lastSequence", "sealedSequence", "sealedHash"), validUntil })];
}

/**
 * Statements that set the state of suspension in the histories of locked, Active vouchers. `suspension` is null for a
 * resumption. The caller must insert the events up to the new heads.
 */
export function suspendVouchers(advances: readonly ChainAdvance[], suspension: Suspension | null): PreparedStatements {
  if (advances.length === 0) return [];
  return [suspendRows({ ...advanceColumns(advances, "lastSequence", "sealedSequence", "sealedHash"), suspension })];
}

/** A voucher's chain head. Null if there is no such voucher. */
export async function findChainHead(db: Queryable, voucherId: string): Promise<ChainHead | null> {
  return (await readChainHeads(db, [voucherId]))[0] ?? null;
}

const VOUCHER_NAME = { id: text, productName: text, serial: integer, externalRef: orNull(text) };
/** The names by which people know a voucher. `externalRef` is null unless the voucher is redeemed. */
export type VoucherName = Row<typeof VOUCHER_NAME>;

const selectVoucherNames = sql.rows("select_voucher_names", VOUCHER_NAME, { voucherId: arrayOf(text) });

/** The names of vouchers, by id. */
export async function nameVouchers(db: Queryable, ids: readonly string[]): Promise<ReadonlyMap<string, VoucherName>> {
  const names = await selectVoucherNames(db, [...new Set(ids)]);
  return new Map(names.map((name) => [name.id, name]));
}

/** Whether a voucher belongs to a sandbox. Null if there is no such voucher. */
export const findVoucherSandbox = sql.value("find_voucher_sandbox", { sandbox: boolean }, { voucherId: text });
