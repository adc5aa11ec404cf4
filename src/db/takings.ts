import type { MemberRole, Standing } from "../domain/audience.ts";
import type { Offer, WindowKind } from "../domain/supply.ts";
import type { Audience } from "../domain/voucher.ts";
import type { Queryable, Transaction } from "./pool.ts";
import { bind, loadStatements, type Writes } from "./statements.ts";
import type { WantedVoucher } from "./vouchers.ts";

const sql = loadStatements(new URL("./takings.sql", import.meta.url), [
  "insert_claim",
  "fill_claim",
  "find_claim",
  "insert_purchase",
  "fill_purchase",
  "find_purchase",
  "select_offers",
  "pick_free_voucher",
  "pick_voucher",
  "is_any_pickable",
  "take_voucher",
]);

/** What makes a user's taking one: their claim of a product, or their payment. */
export type TakingKey =
  | { kind: "claim"; userId: string; productId: string }
  | { kind: "buy"; userId: string; paymentRef: string };

const STATEMENTS = {
  claim: { insert: sql.insert_claim, fill: sql.fill_claim, find: sql.find_claim },
  buy: { insert: sql.insert_purchase, fill: sql.fill_purchase, find: sql.find_purchase },
};

function keyOf(taking: TakingKey): [string, string] {
  return [taking.userId, taking.kind === "claim" ? taking.productId : taking.paymentRef];
}

/** A taken voucher, and what it is resolved by. */
export interface TakenVoucher extends Pick<WantedVoucher, "organizationId" | "codeKey"> {
  id: string;
}

/** The voucher that a user took by this key before, or null. */
export async function findTaking(db: Queryable, taking: TakingKey): Promise<TakenVoucher | null> {
  const { rows } = await db.query<{ id: string; organization_id: string; code_key: string }>(
    bind(STATEMENTS[taking.kind].find, keyOf(taking)),
  );
  const first = rows[0];
  return first === undefined ? null : { id: first.id, organizationId: first.organization_id, codeKey: first.code_key };
}

/**
 * Begins a taking; false when the user has it already. Waits for one of the same key that is being made. Must be filled before
 * the commit.
 */
export async function insertTaking(tx: Transaction, taking: TakingKey): Promise<boolean> {
  const { rowCount } = await tx.query(bind(STATEMENTS[taking.kind].insert, keyOf(taking)));
  return rowCount === 1;
}

/** Writes that say which voucher was taken. */
export function fillTaking(taking: TakingKey, voucherId: string): Writes {
  return [bind(STATEMENTS[taking.kind].fill, [...keyOf(taking), voucherId])];
}

/** A product's supply as it stands towards one user. */
export interface ProductOffers {
  now: Date;
  standing: Standing;
  /** The user's role in the brand's organization. */
  role: MemberRole | null;
  offers: Offer[];
}

/** The batches of a product, or one of them, that have a window of this kind; null when there is no such product. */
export async function selectOffers(
  db: Queryable,
  userId: string,
  productId: string,
  kind: WindowKind,
  batchId: string | null,
): Promise<ProductOffers | null> {
  const { rows } = await db.query<{
    now: Date;
    role: MemberRole | null;
    contract_id: string | null;
    ends_at: Date | null;
    batch_id: string | null;
    audience: Audience;
    valid_until: Date;
    opens_at: Date | null;
    closes_at: Date | null;
  }>(bind(sql.select_offers, [userId, productId, kind, batchId]));
  const first = rows[0];
  if (first === undefined) return null;
  return {
    now: first.now,
    role: first.role,
    standing: {
      isOwner: first.role === "owner",
      contract: first.contract_id === null ? null : { id: first.contract_id, status: "Active", endsAt: first.ends_at },
    },
    offers: rows.flatMap((row) =>
      row.batch_id === null
        ? []
        : [
            {
              batchId: row.batch_id,
              audience: row.audience,
              validUntil: row.valid_until,
              window: { opensAt: row.opens_at, closesAt: row.closes_at },
            },
          ],
    ),
  };
}

/** Locks the next voucher of a batch's windows other than `except`, or returns null. Waits for locked ones only when told to. */
export async function pickVoucher(
  tx: Transaction,
  batchId: string,
  except: readonly string[],
  waiting: boolean,
): Promise<string | null> {
  const statement = waiting ? sql.pick_voucher : sql.pick_free_voucher;
  const { rows } = await tx.query<{ id: string }>(bind(statement, [batchId, except]));
  return rows[0]?.id ?? null;
}

/** Whether any voucher of these batches is left that is not held, those that somebody is about to take included. Takes no lock. */
export async function isAnyPickable(db: Queryable, batchIds: readonly string[]): Promise<boolean> {
  const { rows } = await db.query<{ any: boolean }>(bind(sql.is_any_pickable, [batchIds]));
  return rows[0]?.any === true;
}

/** Writes that take a locked voucher out of its windows and count the event that must say so. */
export function takeVoucherRow(voucherId: string, lastSequenceBefore: number): Writes {
  return [bind(sql.take_voucher, [voucherId, lastSequenceBefore])];
}
