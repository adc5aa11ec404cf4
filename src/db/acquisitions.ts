import type { ContractStatus, Eligibility, MemberRole } from "../domain/audience.ts";
import type { Offer, WindowKind } from "../domain/offer.ts";
import type { Audience } from "../domain/voucher.ts";
import { boolean, orNull, outerJoined, text, textOf, timestamptz } from "./columns.ts";
import type { Queryable, Transaction } from "./pool.ts";
import { execute, loadStatements, type PreparedStatements, prepare, readRow, readRows } from "./statements.ts";

const ACQUIRED_VOUCHER = { id: text, organizationId: text, codeKey: text, sandbox: boolean };

export const sql = loadStatements(new URL("./acquisitions.sql", import.meta.url), {
  insert_claim: {},
  fill_claim: {},
  find_claim: ACQUIRED_VOUCHER,
  insert_purchase: {},
  fill_purchase: {},
  find_purchase: ACQUIRED_VOUCHER,
  select_offers: {
    now: timestamptz,
    sandbox: boolean,
    role: orNull(textOf<MemberRole>()),
    contract: outerJoined({ id: text, status: textOf<ContractStatus>(), endsAt: orNull(timestamptz) }),
    offer: outerJoined({
      batchId: text,
      audience: textOf<Audience>(),
      validUntil: timestamptz,
      opensAt: orNull(timestamptz),
      closesAt: orNull(timestamptz),
    }),
  },
  pick_free_voucher: { id: text },
  pick_voucher: { id: text },
  is_any_pickable: { any: boolean },
  acquire_voucher: {},
});

/** What makes an acquisition unique: a user's claim of a product, or a user's payment. */
export type AcquisitionKey =
  | { kind: "claim"; userId: string; productId: string }
  | { kind: "buy"; userId: string; paymentRef: string };

const STATEMENTS = {
  claim: { insert: sql.insert_claim, fill: sql.fill_claim, find: sql.find_claim },
  buy: { insert: sql.insert_purchase, fill: sql.fill_purchase, find: sql.find_purchase },
};

function keyOf(acquisition: AcquisitionKey): [string, string] {
  return [acquisition.userId, acquisition.kind === "claim" ? acquisition.productId : acquisition.paymentRef];
}

/** An acquired voucher, with its organization and normalized code, by which it is resolved. */
export interface AcquiredVoucher {
  id: string;
  organizationId: string;
  codeKey: string | null;
  /** The organization is a sandbox. */
  sandbox: boolean;
}

/** The voucher of an earlier acquisition with this key, or null. */
export function findAcquisition(db: Queryable, acquisition: AcquisitionKey): Promise<AcquiredVoucher | null> {
  return readRow(db, STATEMENTS[acquisition.kind].find, keyOf(acquisition));
}

/** Inserts an acquisition without its voucher, which `fillAcquisition` sets. Waits for a concurrent insert; false if the key exists. */
export async function insertAcquisition(tx: Transaction, acquisition: AcquisitionKey): Promise<boolean> {
  return (await execute(tx, STATEMENTS[acquisition.kind].insert, keyOf(acquisition))) === 1;
}

/** Statements that set the voucher of an acquisition. */
export function fillAcquisition(acquisition: AcquisitionKey, voucherId: string): PreparedStatements {
  return [prepare(STATEMENTS[acquisition.kind].fill, [...keyOf(acquisition), voucherId])];
}

/** What a product offers to one user. */
export interface ProductOffers {
  /** The database's clock. */
  now: Date;
  /** The product's organization is a sandbox. */
  sandbox: boolean;
  eligibility: Eligibility;
  /** The user's role in the brand's organization. */
  role: MemberRole | null;
  offers: Offer[];
}

/**
 * The batches of a product, or one of them, that have a window of this kind; null when there is no such product for this user.
 * @param userId null for an anonymous caller.
 * @param byLink whether the user came by a referrer's link, which shows the products of a sandbox to everyone.
 */
export async function findOffers(
  db: Queryable,
  userId: string | null,
  productId: string,
  kind: WindowKind,
  batchId: string | null,
  byLink: boolean,
): Promise<ProductOffers | null> {
  const rows = await readRows(db, sql.select_offers, [userId, productId, kind, batchId, byLink]);
  const first = rows[0];
  if (first === undefined) return null;
  const { now, sandbox, role, contract } = first;
  return {
    now,
    sandbox,
    role,
    eligibility: { isOwner: role === "owner", contract },
    offers: rows.flatMap(({ offer }) => {
      if (offer === null) return [];
      const { opensAt, closesAt, ...batch } = offer;
      return [{ ...batch, window: { opensAt, closesAt } }];
    }),
  };
}

/** Locks the next voucher of a batch's windows, other than `except`; null when there is none. Waits for locked ones if `waiting`. */
export async function pickVoucher(
  tx: Transaction,
  batchId: string,
  except: readonly string[],
  waiting: boolean,
): Promise<string | null> {
  const statement = waiting ? sql.pick_voucher : sql.pick_free_voucher;
  return (await readRow(tx, statement, [batchId, except]))?.id ?? null;
}

/** Whether any of these batches has a voucher left without a live reservation. Takes no lock and counts locked vouchers. */
export async function isAnyPickable(db: Queryable, batchIds: readonly string[]): Promise<boolean> {
  return (await readRow(db, sql.is_any_pickable, [batchIds]))?.any === true;
}

/** Statements that remove a locked voucher from its windows and count its next event, which the caller must insert. */
export function acquireVoucherRow(voucherId: string, lastSequenceBefore: number): PreparedStatements {
  return [prepare(sql.acquire_voucher, [voucherId, lastSequenceBefore])];
}
