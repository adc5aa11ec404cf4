import type { Confirmation } from "../domain/redeem.ts";
import { integer, numeric, orNull, outerJoined, type Row, text, timestamptz } from "./columns.ts";
import type { Queryable } from "./pool.ts";
import { columnsOf, loadStatements, type PreparedStatements, prepare, readRow, readRows } from "./statements.ts";

const REDEMPTION = {
  voucherId: text,
  /** The queue job that redeemed the voucher. */
  attemptId: text,
  redeemCode: text,
  serial: integer,
  productName: text,
  productKey: text,
  priceUsd: numeric,
  benefitMonths: integer,
  redeemedAt: timestamptz,
};

/** A voucher's redemption as operators see it. */
const REDEMPTION_OF_VOUCHER = {
  externalRef: text,
  redeemCode: text,
  redeemedAt: timestamptz,
  keyId: text,
  keyLabel: orNull(text),
  ticket: orNull(text),
  attemptId: text,
};

const LAST_REDEMPTION = {
  voucherId: text,
  reference: text,
  redeemedAt: timestamptz,
  productName: text,
  priceUsd: numeric,
};

export const sql = loadStatements(new URL("./redemptions.sql", import.meta.url), {
  find_confirmations: {
    organizationId: text,
    externalRef: text,
    attemptId: text,
    redeemCode: text,
    redeemedAt: timestamptz,
  },
  read_redemptions: { n: integer, now: timestamptz, redemption: outerJoined(REDEMPTION) },
  insert_redemptions: {},
  select_last_redemptions: LAST_REDEMPTION,
  find_redemption_of_voucher: REDEMPTION_OF_VOUCHER,
});

/** A partner's order reference within its organization. */
export interface ExternalRef {
  organizationId: string;
  externalRef: string;
}

/** A key for maps of references. A reference has no control characters, so the separator is unambiguous. */
export function refKey(ref: ExternalRef): string {
  return `${ref.organizationId}\0${ref.externalRef}`;
}

/** The redemptions that these references already have, by {@link refKey}. */
export async function findConfirmations(
  db: Queryable,
  refs: readonly ExternalRef[],
): Promise<Map<string, Confirmation>> {
  const rows = await readRows(db, sql.find_confirmations, columnsOf(refs, "organizationId", "externalRef"));
  return new Map(rows.map(({ organizationId, externalRef, ...its }) => [refKey({ organizationId, externalRef }), its]));
}

/** Everything that the redeem response says about a redemption. */
export type Redemption = Row<typeof REDEMPTION>;

/** The redemption of one reference, if there is one, as of one snapshot. */
export interface ReadRedemption {
  /** The database's clock. */
  now: Date;
  redemption: Redemption | null;
}

/** Reads the redemptions of many references in one statement; results are in the order of `refs`. */
export async function readRedemptions(db: Queryable, refs: readonly ExternalRef[]): Promise<ReadRedemption[]> {
  const rows = await readRows(db, sql.read_redemptions, columnsOf(refs, "organizationId", "externalRef"));
  const results: ReadRedemption[] = new Array(refs.length);
  for (const { n, now, redemption } of rows) results[n] = { now, redemption };
  return results;
}

export interface NewRedemption extends ExternalRef {
  voucherId: string;
  keyId: string;
  attemptId: string;
  ticket: string | null;
  redeemCode: string;
}

/** Statements that insert redemptions. They raise when another transaction has confirmed one of the references. */
export function insertRedemptions(redemptions: readonly NewRedemption[], redeemedAt: Date): PreparedStatements {
  if (redemptions.length === 0) return [];
  return [
    prepare(sql.insert_redemptions, [
      redeemedAt,
      ...columnsOf(
        redemptions,
        "voucherId",
        "organizationId",
        "keyId",
        "attemptId",
        "ticket",
        "redeemCode",
        "externalRef",
      ),
    ]),
  ];
}

/** A voucher's redemption, or null. */
export function findRedemptionOfVoucher(
  db: Queryable,
  voucherId: string,
): Promise<Row<typeof REDEMPTION_OF_VOUCHER> | null> {
  return readRow(db, sql.find_redemption_of_voucher, [voucherId]);
}

/** A redemption in an organization's list. */
export type LastRedemption = Row<typeof LAST_REDEMPTION>;

/** At most `limit` redemptions of an organization before one of them, or the newest, newest first. For operators. */
export function selectLastRedemptions(
  db: Queryable,
  organizationId: string,
  before: { redeemedAt: Date; voucherId: string } | null,
  limit: number,
): Promise<LastRedemption[]> {
  const values = [organizationId, before?.redeemedAt ?? null, before?.voucherId ?? "", limit];
  return readRows(db, sql.select_last_redemptions, values);
}
