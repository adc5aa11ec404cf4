import type pg from "pg";
import type { Confirmation } from "../domain/redeem.ts";
import { bigint, boolean, integer, numeric, orNull, outerJoined, type Row, text, timestamptz } from "./columns.ts";
import type { Queryable, Transaction } from "./pool.ts";
import {
  columnsOf,
  execute,
  loadStatements,
  type PreparedStatements,
  prepare,
  readRequiredRow,
  readRow,
  readRows,
} from "./statements.ts";

/** A redemption as responses to partners show it. */
const RESULT = {
  voucherId: text,
  redeemCode: text,
  serial: integer,
  productName: text,
  productKey: text,
  priceUsd: numeric,
  benefitMonths: integer,
  redeemedAt: timestamptz,
};

/** Also has the id of the queue job that redeemed the voucher. */
const REDEMPTION = { ...RESULT, attemptId: text };

/** Also has the voucher's normalized code, to compare with that of a request. */
const CODED_REDEMPTION = { ...REDEMPTION, codeKey: text };

const LISTED_REDEMPTION = {
  ...RESULT,
  externalRef: text,
  ticket: orNull(text),
  keyId: text,
  keyLabel: orNull(text),
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

const REDEMPTION_SUM = {
  day: text,
  productId: text,
  productName: text,
  keyId: text,
  keyLabel: orNull(text),
  redemptions: bigint,
  cents: bigint,
};

const CLOSED = { closedUntil: timestamptz, trustedAt: orNull(timestamptz) };

export const sql = loadStatements(new URL("./redemptions.sql", import.meta.url), {
  read_redemptions: { n: integer, now: timestamptz, redemption: outerJoined(CODED_REDEMPTION) },
  close_redemptions: {},
  trust_clock: {},
  find_closed_until: CLOSED,
  find_complete_until: { completeUntil: timestamptz },
  select_redemptions: LISTED_REDEMPTION,
  insert_redemptions: {},
  select_last_redemptions: LAST_REDEMPTION,
  sum_redemptions: REDEMPTION_SUM,
  find_redemption_of_voucher: REDEMPTION_OF_VOUCHER,
  lock_references: { n: integer },
  find_references: {
    n: integer,
    isEnded: boolean,
    confirmation: outerJoined({ attemptId: text, redeemCode: text, redeemedAt: timestamptz }),
  },
  keep_generation: {},
  lock_references_to_end: { n: integer },
  end_references: {},
  begin_generation: {},
  delete_old_ends: {},
});

/** A partner's order reference within its organization. */
export interface ExternalRef {
  organizationId: string;
  externalRef: string;
}

/** The key of a reference in a `Map`. A reference has no control characters, so the separator is unambiguous. */
export function refKey(ref: ExternalRef): string {
  return `${ref.organizationId}\0${ref.externalRef}`;
}

/** Everything that the redeem response says about a redemption. */
export type Redemption = Row<typeof REDEMPTION>;

/** The redemption of one reference, or null, and the time of the read. */
export interface ReadRedemption {
  /** The database's clock. */
  now: Date;
  redemption: Row<typeof CODED_REDEMPTION> | null;
}

/** Reads the redemptions of many references in one statement; results are in the order of `refs`. */
export async function readRedemptions(db: Queryable, refs: readonly ExternalRef[]): Promise<ReadRedemption[]> {
  const rows = await readRows(db, sql.read_redemptions, columnsOf(refs, "organizationId", "externalRef"));
  const results: ReadRedemption[] = new Array(refs.length);
  for (const { n, now, redemption } of rows) results[n] = { now, redemption };
  return results;
}

/**
 * Refuses further redemptions with a time more than two seconds ago, and at most until `latest`. Returns the time before which the redemptions are complete: later
 * statements see all of them, and none is ever added. Each of the two statements is a transaction of its own, because the second must see the
 * first one committed.
 */
export async function closeRedemptions(pool: pg.Pool, latest: Date): Promise<Date> {
  await execute(pool, sql.close_redemptions, [latest]);
  return findCompleteUntil(pool);
}

/** The time before which redemptions are complete, without moving it. */
export async function findCompleteUntil(db: Queryable): Promise<Date> {
  return (await readRequiredRow(db, sql.find_complete_until, [])).completeUntil;
}

/** The time before which the database refuses redemptions, and when an operator last said that its clock is right. */
export function findClosedUntil(db: Queryable): Promise<Row<typeof CLOSED>> {
  return readRequiredRow(db, sql.find_closed_until, []);
}

/** Says that the database's clock is right: redemptions are refused until two seconds ago, and no longer until a time that has not come yet. */
export async function trustClock(db: Queryable): Promise<void> {
  await execute(db, sql.trust_clock, []);
}

/** A redemption as the list of an organization shows it. */
export type ListedRedemption = Row<typeof LISTED_REDEMPTION>;

/** A redemption's position in the list of an organization. With an empty id, it is before all redemptions of that time. */
interface ListPosition {
  redeemedAt: Date;
  voucherId: string;
}

/** At most `limit` redemptions of an organization after a position and before a time, in order of time and voucher. */
export function selectRedemptions(
  db: Queryable,
  organizationId: string,
  after: ListPosition,
  before: Date,
  limit: number,
): Promise<ListedRedemption[]> {
  return readRows(db, sql.select_redemptions, [organizationId, after.redeemedAt, after.voucherId, before, limit]);
}

export interface NewRedemption extends ExternalRef {
  voucherId: string;
  keyId: string;
  attemptId: string;
  ticket: string | null;
  redeemCode: string;
}

/** Statements that insert redemptions. They raise when another transaction has confirmed one of the references or closed the time. */
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

/** A redemption in the list that operators see for an organization. */
export type LastRedemption = Row<typeof LAST_REDEMPTION>;

/** For operators: at most `limit` redemptions of an organization, newest first; if `before` is given, only older ones than it. */
export function selectLastRedemptions(
  db: Queryable,
  organizationId: string,
  before: ListPosition | null,
  limit: number,
): Promise<LastRedemption[]> {
  const values = [organizationId, before?.redeemedAt ?? null, before?.voucherId ?? "", limit];
  return readRows(db, sql.select_last_redemptions, values);
}

/** How many redemptions of a day (`YYYY-MM-DD`, UTC), a product and a key there are, and their value in cents. */
export type RedemptionSum = Row<typeof REDEMPTION_SUM>;

/** The sums of an organization's redemptions at or after `from` and before `to`, in order of days. */
export function sumRedemptions(db: Queryable, organizationId: string, from: Date, to: Date): Promise<RedemptionSum[]> {
  return readRows(db, sql.sum_redemptions, [organizationId, from, to]);
}

/** What the first read of an attempt has seen of the ends of its reference. */
export interface SeenReference extends ExternalRef {
  /** The version of the reference's last end; 0 without one. */
  seenEnd: number;
  generation: number;
}

/**
 * Locks the references of attempts against an end, until the transaction ends, and reads what is known of them. Does not wait.
 * Each result has the attempt's reference; `isEnded` if the reference was ended since the attempt's first read, or is being ended.
 */
export async function lockReferences(
  tx: Transaction,
  attempts: readonly SeenReference[],
): Promise<{ n: number; isEnded: boolean; confirmation: Confirmation | null }[]> {
  const [held, known] = await Promise.all([
    readRows(tx, sql.lock_references, columnsOf(attempts, "organizationId", "externalRef")),
    readRows(tx, sql.find_references, columnsOf(attempts, "organizationId", "externalRef", "seenEnd", "generation")),
  ]);
  return [...known, ...held.map(({ n }) => ({ n, isEnded: true, confirmation: null }))];
}

/**
 * Locks references so that no other transaction redeems or ends them before this one has ended. Does not wait: returns the positions of
 * those that another transaction has locked. The references must be distinct.
 */
export async function lockReferencesToEnd(tx: Transaction, refs: readonly ExternalRef[]): Promise<Set<number>> {
  const [held] = await Promise.all([
    readRows(tx, sql.lock_references_to_end, columnsOf(refs, "organizationId", "externalRef")),
    execute(tx, sql.keep_generation, []),
  ]);
  return new Set(held.map(({ n }) => n));
}

/** Statements that end the attempts of references that {@link lockReferencesToEnd} has locked and that no later statement found redeemed. */
export function endReferences(refs: readonly ExternalRef[]): PreparedStatements {
  return refs.length === 0 ? [] : [prepare(sql.end_references, columnsOf(refs, "organizationId", "externalRef"))];
}

/** Begins a generation of ends if the present one is an hour old, and deletes at most `limit` ends that no attempt needs; returns how many. */
export async function deleteOldEnds(pool: pg.Pool, limit: number): Promise<number> {
  await execute(pool, sql.begin_generation, []);
  return execute(pool, sql.delete_old_ends, [limit]);
}
