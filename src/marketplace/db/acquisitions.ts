import type { MemberRole } from "../../core/catalog/db/catalog.ts";
import { markBrokenChains } from "../../core/chain/db/broken-chains.ts";
import type { Audience, WindowKind } from "../../core/voucher/voucher.ts";
import {
  arrayOf,
  boolean,
  integer,
  orNull,
  outerJoined,
  type Row,
  text,
  textOf,
  timestamptz,
} from "../../platform/db/columns.ts";
import { LATEST, timeOf, withLatest } from "../../platform/db/database-clock.ts";
import type { Queryable } from "../../platform/db/pool.ts";
import { columnsOf, type PreparedStatements, Statements } from "../../platform/db/statements.ts";
import type { ContractStatus } from "../audience.ts";
import type { Offer } from "../offer.ts";

const PRODUCT = { id: text, brandId: text, organizationId: text, sandbox: boolean };

const LINK = {
  contractId: text,
  referrerId: text,
  status: textOf<ContractStatus>(),
  endsAt: orNull(timestamptz),
};

const ACQUIRED_VOUCHER = { id: text, organizationId: text, codeKey: text };

const ACQUIRER = {
  role: orNull(textOf<MemberRole>()),
  contract: outerJoined({ id: text, status: textOf<ContractStatus>(), endsAt: orNull(timestamptz) }),
  earlier: outerJoined(ACQUIRED_VOUCHER),
};

/**
 * Whether a batch has a voucher that can be acquired (`left`), has only suspended vouchers left (`held`), or has none.
 */
type Supply = "left" | "held" | "none";

export const sql = new Statements(new URL("./acquisitions.sql", import.meta.url));

const selectSources = withLatest(
  sql.rows(
    "read_sources",
    {
      n: integer,
      now: timestamptz,
      product: outerJoined(PRODUCT),
      link: outerJoined(LINK),
      offer: outerJoined({
        batchId: text,
        audience: textOf<Audience>(),
        validUntil: timestamptz,
        suspended: boolean,
        opensAt: orNull(timestamptz),
        closesAt: orNull(timestamptz),
        supply: orNull(textOf<Supply>()),
      }),
    },
    { way: arrayOf(text), id: arrayOf(text), kind: arrayOf(text), notCounted: orNull(arrayOf(text)), ...LATEST },
  ),
);
const selectAcquirers = sql.rows(
  "read_acquirers",
  { n: integer, ...ACQUIRER },
  {
    userId: arrayOf(text),
    organizationId: arrayOf(text),
    brandId: arrayOf(text),
    productId: arrayOf(text),
    paymentRef: arrayOf(orNull(text)),
  },
);

/**
 * Where a user acquires a voucher (a listing, a product or a link), and whether by claim or purchase. For a link, `id`
 * is its code.
 */
export interface WantedSource {
  way: "listing" | "product" | "link";
  id: string;
  kind: WindowKind;
}

type SourceProduct = Row<typeof PRODUCT>;

/** The product, contract and batches of a listing, product or link, read in one snapshot. */
export interface Source {
  /** The time of the read on the database's clock. All decisions about this source use it. */
  now: Date;
  product: SourceProduct | null;
  link: Row<typeof LINK> | null;
  /** `supply` is null when it was not read. */
  offers: (Offer & { supply: Supply | null })[];
}

/**
 * Reads many sources in one statement. Results are in the order of `wanted`.
 * @param notCounted vouchers that do not count as supply. With null, the supply is not read.
 */
export async function readSources(
  db: Queryable,
  wanted: readonly WantedSource[],
  notCounted: readonly string[] | null,
): Promise<Source[]> {
  const rows = await selectSources(db, { ...columnsOf(wanted, "way", "id", "kind"), notCounted });
  const sources: Source[] = new Array(wanted.length);
  for (const { n, offer, ...found } of rows) {
    sources[n] ??= { ...found, now: timeOf(db, found.now), offers: [] };
    if (offer === null) continue;
    const { opensAt, closesAt, ...batch } = offer;
    sources[n].offers.push({ ...batch, window: { opensAt, closesAt } });
  }
  return sources;
}

/** The unique key of an acquisition: a user's claim of a product, or a user's payment in an organization. */
export interface AcquisitionKey {
  userId: string;
  product: SourceProduct;
  /** Null for a claim. */
  paymentRef: string | null;
}

/** An acquired voucher. A look-up finds it by its organization and its code's stored key. */
export type AcquiredVoucher = Row<typeof ACQUIRED_VOUCHER>;

/**
 * The user's role in the organization, contract with the brand, and voucher from an earlier, equal claim or purchase.
 */
export type Acquirer = Row<typeof ACQUIRER>;

/** Reads what is known about many acquirers in one statement. Results are in the order of `keys`. */
export async function readAcquirers(db: Queryable, keys: readonly AcquisitionKey[]): Promise<Acquirer[]> {
  const wanted = keys.map(({ userId, product, paymentRef }) => ({
    ...product,
    productId: product.id,
    userId,
    paymentRef,
  }));
  const columns = columnsOf(wanted, "userId", "organizationId", "brandId", "productId", "paymentRef");
  const rows = await selectAcquirers(db, columns);
  if (rows.length !== keys.length) throw new Error(`expected ${keys.length} rows, got ${rows.length}`);
  const acquirers: Acquirer[] = new Array(keys.length);
  for (const { n, ...acquirer } of rows) acquirers[n] = acquirer;
  return acquirers;
}

export const pickFreeVouchers = withLatest(
  sql.values("pick_free_vouchers", { id: text }, { batchId: text, except: arrayOf(text), limit: integer, ...LATEST }),
);

/** @throws DatabaseError 55P03 when the lock is not granted within `lock_timeout`. */
export const pickVoucher = withLatest(sql.value("pick_voucher", { id: text }, { batchId: text, ...LATEST }));

const makeUnavailable = sql.prepare("set_damaged_aside", { voucherId: arrayOf(text) });

/** Statements that make damaged vouchers permanently unavailable to users, and record their chains as broken. */
export function setDamagedAside(ids: readonly string[]): PreparedStatements {
  return ids.length === 0 ? [] : [makeUnavailable(ids), markBrokenChains(ids)];
}

/** An acquisition that the current transaction has decided, with its locked voucher. */
export interface NewAcquisition extends AcquisitionKey {
  voucher: { id: string; organizationId: string; lastSequence: number };
}

const NOW = { now: timestamptz };
const insertClaims = sql.prepareAll("insert_claims", { userId: text, productId: text, voucherId: text }, NOW);
const insertPurchases = sql.prepareAll(
  "insert_purchases",
  { organizationId: text, userId: text, paymentRef: text, voucherId: text },
  NOW,
);
const acquireVouchers = sql.prepareAll("acquire_vouchers", { voucherId: text, lastSequence: integer });

/**
 * Statements that record acquisitions of locked vouchers, make the vouchers unavailable to other users, and add one to
 * each voucher's last sequence. The caller must insert each voucher's event with that sequence. The inserts into
 * `claims` and `purchases` come first, because only they can wait for another transaction.
 * @param now the time of the decision, which the events must have.
 */
export function insertAcquisitions(acquisitions: readonly NewAcquisition[], now: Date): PreparedStatements {
  const rows = acquisitions.map(({ userId, product, paymentRef, voucher }) => ({
    ...voucher,
    voucherId: voucher.id,
    userId,
    productId: product.id,
    paymentRef,
  }));
  const paid = rows.flatMap(({ paymentRef, ...row }) => (paymentRef === null ? [] : [{ ...row, paymentRef }]));
  return [
    ...insertClaims(
      rows.filter(({ paymentRef }) => paymentRef === null),
      now,
    ),
    ...insertPurchases(paid, now),
    ...acquireVouchers(rows),
  ];
}
