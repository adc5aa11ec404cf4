import type { Confirmation } from "../domain/redeem.ts";
import type { Queryable } from "./pool.ts";
import { bind, loadStatements, type Writes } from "./statements.ts";

const sql = loadStatements(new URL("./redemptions.sql", import.meta.url), [
  "find_confirmations",
  "find_redeem_result",
  "insert_redemptions",
]);

/** A partner's order reference within its organization. */
export interface ExternalRef {
  organizationId: string;
  externalRef: string;
}

/** A key for maps of references. A reference holds no control character, so the separator is unambiguous. */
export function refKey(ref: ExternalRef): string {
  return `${ref.organizationId}\0${ref.externalRef}`;
}

/** The burns that these references stand for already, by {@link refKey}. */
export async function findConfirmations(
  db: Queryable,
  refs: readonly ExternalRef[],
): Promise<Map<string, Confirmation>> {
  const { rows } = await db.query<{
    organization_id: string;
    external_ref: string;
    attempt_id: string;
    redeem_code: string;
    redeemed_at: Date;
  }>(bind(sql.find_confirmations, [refs.map((ref) => ref.organizationId), refs.map((ref) => ref.externalRef)]));
  return new Map(
    rows.map((row) => [
      refKey({ organizationId: row.organization_id, externalRef: row.external_ref }),
      { attemptId: row.attempt_id, redeemCode: row.redeem_code, redeemedAt: row.redeemed_at },
    ]),
  );
}

/** Everything that a redeem answer says about a burn. */
export interface Redemption {
  voucherId: string;
  /** The attempt that burnt it. */
  attemptId: string;
  redeemCode: string;
  serial: number;
  productName: string;
  productKey: string;
  priceUsd: number;
  benefitMonths: number;
  redeemedAt: Date;
}

/** The burn behind one reference, or null when the reference is not confirmed. */
export async function findRedemption(db: Queryable, ref: ExternalRef): Promise<Redemption | null> {
  const { rows } = await db.query<{
    voucher_id: string;
    attempt_id: string;
    redeem_code: string;
    redeemed_at: Date;
    serial: number;
    price_usd: number;
    benefit_months: number;
    product_name: string;
    product_key: string;
  }>(bind(sql.find_redeem_result, [ref.organizationId, ref.externalRef]));
  const row = rows[0];
  if (row === undefined) return null;
  return {
    voucherId: row.voucher_id,
    attemptId: row.attempt_id,
    redeemCode: row.redeem_code,
    serial: row.serial,
    productName: row.product_name,
    productKey: row.product_key,
    priceUsd: row.price_usd,
    benefitMonths: row.benefit_months,
    redeemedAt: row.redeemed_at,
  };
}

/** A burn to be written. */
export interface NewRedemption extends ExternalRef {
  voucherId: string;
  keyId: string;
  attemptId: string;
  ticket: string | null;
  redeemCode: string;
}

/** Writes of burns, which raise when another transaction confirmed a reference first. */
export function insertRedemptions(redemptions: readonly NewRedemption[], redeemedAt: Date): Writes {
  if (redemptions.length === 0) return [];
  return [
    bind(sql.insert_redemptions, [
      redeemedAt,
      redemptions.map((redemption) => redemption.voucherId),
      redemptions.map((redemption) => redemption.organizationId),
      redemptions.map((redemption) => redemption.keyId),
      redemptions.map((redemption) => redemption.attemptId),
      redemptions.map((redemption) => redemption.ticket),
      redemptions.map((redemption) => redemption.redeemCode),
      redemptions.map((redemption) => redemption.externalRef),
    ]),
  ];
}
