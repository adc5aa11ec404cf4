import type { ContractStatus, MemberRole } from "../domain/audience.ts";
import type { Offer, WindowKind } from "../domain/offer.ts";
import type { Audience } from "../domain/voucher.ts";
import { markBrokenChains } from "./broken-chains.ts";
import { boolean, integer, orNull, outerJoined, type Row, text, textOf, timestamptz } from "./columns.ts";
import type { Queryable, Transaction } from "./pool.ts";
import { columnsOf, loadStatements, type PreparedStatements, prepare, readRow, readRows } from "./statements.ts";

const PRODUCT = {
  id: text,
  brandId: text,
  organizationId: text,
  /** Whether the organization is a sandbox. */
  sandbox: boolean,
};

const LINK = {
  contractId: text,
  referrerId: text,
  status: textOf<ContractStatus>(),
  endsAt: orNull(timestamptz),
};

const ACQUIRED_VOUCHER = { id: text, organizationId: text, codeKey: orNull(text) };

const ACQUIRER = {
  role: orNull(textOf<MemberRole>()),
  contract: outerJoined({ id: text, status: textOf<ContractStatus>(), endsAt: orNull(timestamptz) }),
  earlier: outerJoined(ACQUIRED_VOUCHER),
};

export const sql = loadStatements(new URL("./acquisitions.sql", import.meta.url), {
  read_sources: {
    n: integer,
    now: timestamptz,
    product: outerJoined(PRODUCT),
    link: outerJoined(LINK),
    offer: outerJoined({
      batchId: text,
      audience: textOf<Audience>(),
      validUntil: timestamptz,
      opensAt: orNull(timestamptz),
      closesAt: orNull(timestamptz),
      left: orNull(boolean),
    }),
  },
  read_acquirers: { n: integer, ...ACQUIRER },
  pick_free_vouchers: { id: text },
  pick_voucher: { id: text },
  find_damaged: { id: text },
  set_damaged_aside: {},
  insert_claims: {},
  insert_purchases: {},
  acquire_vouchers: {},
});

/** A listing, product or link through which a user acquires a voucher, and the kind of window. For a link, `id` is its code. */
export interface WantedSource {
  way: "listing" | "product" | "link";
  id: string;
  kind: WindowKind;
}

/** The product of a listing or link, or the product itself. */
type SourceProduct = Row<typeof PRODUCT>;

/** The product, contract and batches that a listing, product or link stands for, from one snapshot. */
export interface Source {
  /** The database's clock. */
  now: Date;
  /** Null: there is no such listing, product or link. */
  product: SourceProduct | null;
  /** The contract of a link; null for other sources. */
  link: Row<typeof LINK> | null;
  /** `left`: whether the batch has a voucher that can be acquired; null when it was not read. */
  offers: (Offer & { left: boolean | null })[];
}

/**
 * Reads many sources in one statement; results are in the order of `wanted`.
 * @param notCounted vouchers that do not count as left. Null: do not look for any.
 */
export async function readSources(
  db: Queryable,
  wanted: readonly WantedSource[],
  notCounted: readonly string[] | null,
): Promise<Source[]> {
  const rows = await readRows(db, sql.read_sources, [...columnsOf(wanted, "way", "id", "kind"), notCounted]);
  const sources: Source[] = new Array(wanted.length);
  for (const { n, offer, ...found } of rows) {
    sources[n] ??= { ...found, offers: [] };
    if (offer === null) continue;
    const { opensAt, closesAt, ...batch } = offer;
    sources[n].offers.push({ ...batch, window: { opensAt, closesAt } });
  }
  return sources;
}

/** What makes an acquisition unique: a user's claim of a product, or a user's payment in an organization. */
export interface AcquisitionKey {
  userId: string;
  product: SourceProduct;
  /** Null for a claim. */
  paymentRef: string | null;
}

/** An acquired voucher. Its organization and normalized code are the keys to look it up. */
export type AcquiredVoucher = Row<typeof ACQUIRED_VOUCHER>;

/** An acquiring user: the role in an organization, the contract with its brand, and the voucher that an earlier call of the same claim or purchase acquired. */
export type Acquirer = Row<typeof ACQUIRER>;

/** Reads many users in one statement; results are in the order of `keys`. */
export async function readAcquirers(db: Queryable, keys: readonly AcquisitionKey[]): Promise<Acquirer[]> {
  const rows = await readRows(db, sql.read_acquirers, [
    keys.map(({ userId }) => userId),
    keys.map(({ product }) => product.organizationId),
    keys.map(({ product }) => product.brandId),
    keys.map(({ product }) => product.id),
    keys.map(({ paymentRef }) => paymentRef),
  ]);
  if (rows.length !== keys.length) throw new Error(`expected ${keys.length} rows, got ${rows.length}`);
  const acquirers: Acquirer[] = new Array(keys.length);
  for (const { n, ...acquirer } of rows) acquirers[n] = acquirer;
  return acquirers;
}

/** Locks at most `limit` unlocked vouchers that users can acquire from a batch, except `except`. Returns their ids in order of serials. */
export async function pickFreeVouchers(
  tx: Transaction,
  batchId: string,
  except: readonly string[],
  limit: number,
): Promise<string[]> {
  return (await readRows(tx, sql.pick_free_vouchers, [batchId, except, limit])).map(({ id }) => id);
}

/**
 * Locks the next voucher that users can acquire from a batch, waiting up to `lock_timeout` if it is locked; null when there is none.
 * @throws DatabaseError 55P03 when the lock is not granted in time.
 */
export async function pickVoucher(tx: Transaction, batchId: string): Promise<string | null> {
  return (await readRow(tx, sql.pick_voucher, [batchId]))?.id ?? null;
}

/** Of locked vouchers, those whose damaged chains take no further event. */
export async function findDamaged(tx: Transaction, voucherIds: readonly string[]): Promise<string[]> {
  return voucherIds.length === 0 ? [] : (await readRows(tx, sql.find_damaged, [voucherIds])).map(({ id }) => id);
}

/** Statements that make damaged vouchers unavailable to users for good, and record that their chains are broken. */
export function setDamagedAside(ids: readonly string[]): PreparedStatements {
  return ids.length === 0 ? [] : [prepare(sql.set_damaged_aside, [ids]), markBrokenChains(ids)];
}

/** An acquisition that the current transaction has decided, and its locked voucher. */
export interface NewAcquisition extends AcquisitionKey {
  voucher: { id: string; organizationId: string; lastSequence: number };
}

/**
 * Statements that record acquisitions of locked vouchers, make the vouchers unavailable to other users, and add one to the last sequence of
 * each. The caller must insert the event with that sequence. Claims and purchases come first: only they can wait for another transaction.
 */
export function insertAcquisitions(acquisitions: readonly NewAcquisition[]): PreparedStatements {
  if (acquisitions.length === 0) return [];
  const claims = acquisitions.filter(({ paymentRef }) => paymentRef === null);
  const purchases = acquisitions.filter(({ paymentRef }) => paymentRef !== null);
  const writes: PreparedStatements = [];
  if (claims.length > 0) {
    writes.push(
      prepare(sql.insert_claims, [
        claims.map(({ userId }) => userId),
        claims.map(({ product }) => product.id),
        claims.map(({ voucher }) => voucher.id),
      ]),
    );
  }
  if (purchases.length > 0) {
    writes.push(
      prepare(sql.insert_purchases, [
        purchases.map(({ voucher }) => voucher.organizationId),
        purchases.map(({ userId }) => userId),
        purchases.map(({ paymentRef }) => paymentRef),
        purchases.map(({ voucher }) => voucher.id),
      ]),
    );
  }
  const vouchers = acquisitions.map(({ voucher }) => voucher);
  writes.push(prepare(sql.acquire_vouchers, columnsOf(vouchers, "id", "lastSequence")));
  return writes;
}
