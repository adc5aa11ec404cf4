import type pg from "pg";
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
  timestamptz,
} from "../../../platform/db/columns.ts";
import { type DatabaseClock, LATEST, latestTime } from "../../../platform/db/database-clock.ts";
import type { Queryable, Transaction } from "../../../platform/db/pool.ts";
import { columnsOf, type PreparedStatements, Statements } from "../../../platform/db/statements.ts";
import type { Confirmation } from "../redeem.ts";

/** A redemption in the form in which partners see it. */
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

/** A result with the id of the queue job that redeemed the voucher. */
const REDEMPTION = { ...RESULT, attemptId: text };
export type Redemption = Row<typeof REDEMPTION>;

const LISTED_REDEMPTION = { ...RESULT, externalRef: text, ticket: orNull(text), keyId: text, keyLabel: orNull(text) };
export type ListedRedemption = Row<typeof LISTED_REDEMPTION>;

/** A redemption with the voucher's normalized code, to compare it with the code in a request. */
const CODED_REDEMPTION = { ...REDEMPTION, ...LISTED_REDEMPTION, codeKey: text };

const LAST_REDEMPTION = {
  voucherId: text,
  reference: text,
  redeemedAt: timestamptz,
  productName: text,
  priceUsd: numeric,
};
export type LastRedemption = Row<typeof LAST_REDEMPTION>;

const STATEMENT_ROW = { voucherId: text, redeemedAt: timestamptz, priceUsd: numeric, recordHash: text };
/** The fields of a redemption that a statement's hash covers. */
export type StatementRow = Row<typeof STATEMENT_ROW>;

/** The number of redemptions of one period, product and key, and their value in cents. The first period is 1. */
const REDEMPTION_SUM = {
  period: integer,
  productId: text,
  productName: text,
  productKey: text,
  brand: text,
  keyId: text,
  keyLabel: orNull(text),
  redemptions: bigint,
  cents: bigint,
  firstAt: timestamptz,
  lastAt: timestamptz,
};
export type RedemptionSum = Row<typeof REDEMPTION_SUM>;

export const sql = new Statements(new URL("./redemptions.sql", import.meta.url));

/** The time before which redemptions are complete: none is added, and later statements see all. Never goes back. */
export const findCompleteUntil = sql.requiredValue("find_complete_until", { completeUntil: timestamptz });
export const findClosedUntil = sql.requiredRow("find_closed_until", {
  closedUntil: timestamptz,
  trustedAt: orNull(timestamptz),
});
export const trustClock = sql.execute("trust_clock");
export const findRedemptionOfVoucher = sql.row(
  "find_redemption_of_voucher",
  {
    externalRef: text,
    redeemCode: text,
    redeemedAt: timestamptz,
    keyId: text,
    keyLabel: orNull(text),
    ticket: orNull(text),
    attemptId: text,
  },
  { voucherId: text },
);
export const sumRedemptions = sql.rows("sum_redemptions", REDEMPTION_SUM, {
  organizationId: text,
  bounds: arrayOf(timestamptz),
});
const KEPT_STATEMENT = { content: text, note: orNull(text), noteDue: boolean };
/** A final statement as JSON, with the log's note. */
export type KeptStatement = Row<typeof KEPT_STATEMENT>;
export const findStatement = sql.row("find_statement", KEPT_STATEMENT, { organizationId: text, month: text });
export const keepStatement = sql.execute("keep_statement", { organizationId: text, month: text, content: text });
const selectByReference = sql.rows(
  "read_redemptions",
  {
    n: integer,
    now: timestamptz,
    redemption: outerJoined(CODED_REDEMPTION),
  },
  { organizationId: arrayOf(text), externalRef: arrayOf(text) },
);
const moveClosedUntil = sql.execute("move_closed_until", { latest: timestamptz });
const proveCompleteUntil = sql.execute("prove_complete_until");
const PAGE = {
  organizationId: text,
  afterTime: timestamptz,
  afterVoucherId: text,
  before: timestamptz,
  limit: integer,
};
const selectPage = sql.rows("select_redemptions", LISTED_REDEMPTION, PAGE);
const selectStatementPage = sql.rows("select_statement_rows", STATEMENT_ROW, PAGE);
const selectLastPage = sql.rows("select_last_redemptions", LAST_REDEMPTION, {
  organizationId: text,
  beforeTime: orNull(timestamptz),
  beforeVoucherId: text,
  limit: integer,
});
const insertRows = sql.prepare("insert_redemptions", {
  redeemedAt: timestamptz,
  voucherId: arrayOf(text),
  organizationId: arrayOf(text),
  keyId: arrayOf(text),
  attemptId: arrayOf(text),
  ticket: arrayOf(orNull(text)),
  redeemCode: arrayOf(text),
  externalRef: arrayOf(text),
});
const tryLockShared = sql.values(
  "lock_references",
  { n: integer },
  { organizationId: arrayOf(text), externalRef: arrayOf(text) },
);
const findReferences = sql.rows(
  "find_references",
  {
    n: integer,
    isEnded: boolean,
    confirmation: outerJoined({ attemptId: text, redeemCode: text, redeemedAt: timestamptz }),
  },
  { organizationId: arrayOf(text), externalRef: arrayOf(text), seenEnd: arrayOf(bigint), generation: arrayOf(bigint) },
);
const keepGeneration = sql.execute("keep_generation");
const tryLockToEnd = sql.values(
  "lock_references_to_end",
  { n: integer },
  { organizationId: arrayOf(text), externalRef: arrayOf(text) },
);
const beginGeneration = sql.execute("begin_generation", LATEST);
const deleteEnds = sql.execute("delete_old_ends", { limit: integer });

/** A partner's order reference within its organization. */
export interface ExternalRef {
  organizationId: string;
  externalRef: string;
}

/** The key of a reference in a `Map`. A reference has no control characters, so the separator is unambiguous. */
export function refKey(ref: ExternalRef): string {
  return `${ref.organizationId}\0${ref.externalRef}`;
}

/** The redemption of one reference, or null, and the time of the read on the database's clock. */
export interface ReadRedemption {
  now: Date;
  redemption: Row<typeof CODED_REDEMPTION> | null;
}

/** Reads the redemptions of many references in one statement. The results are in the order of `refs`. */
export async function readRedemptions(db: Queryable, refs: readonly ExternalRef[]): Promise<ReadRedemption[]> {
  const results: ReadRedemption[] = new Array(refs.length);
  for (const { n, ...read } of await selectByReference(db, columnsOf(refs, "organizationId", "externalRef")))
    results[n] = read;
  return results;
}

/**
 * Makes the database refuse redemptions with a time more than two seconds ago, or before `latest` if that is earlier.
 * Then moves {@link findCompleteUntil} as far as open transactions allow. Each statement is a transaction of its own,
 * because the second must see what the first has committed.
 */
export async function advanceCompleteUntil(pool: pg.Pool, latest: Date): Promise<void> {
  await moveClosedUntil(pool, latest);
  await proveCompleteUntil(pool);
}

/**
 * Like {@link advanceCompleteUntil}, up to the current time of the clock that ignores jumps ahead. With the database's
 * own clock, a jump ahead would make the database refuse redemptions with the right time.
 */
export async function moveCompleteUntil(ctx: { pool: pg.Pool; deployment: { clock: DatabaseClock } }): Promise<void> {
  await ctx.deployment.clock.ready();
  await advanceCompleteUntil(ctx.pool, ctx.deployment.clock.steadyNow());
}

/** A position in an organization's list of redemptions. An empty id precedes all redemptions of that time. */
export interface ListPosition {
  redeemedAt: Date;
  voucherId: string;
}

export type SelectPage<One> = (
  db: Queryable,
  organizationId: string,
  after: ListPosition,
  before: Date,
  limit: number,
) => Promise<One[]>;

const pagesOf =
  <One>(select: (db: Queryable, values: Parameters<typeof selectPage>[1]) => Promise<One[]>): SelectPage<One> =>
  (db, organizationId, after, before, limit) =>
    select(db, { organizationId, afterTime: after.redeemedAt, afterVoucherId: after.voucherId, before, limit });

/** At most `limit` redemptions of an organization after a position and before a time, in order of time and voucher. */
export const selectRedemptions = pagesOf(selectPage);

/** Like {@link selectRedemptions}, with the fields that a statement's hash covers. */
export const selectStatementRows = pagesOf(selectStatementPage);

export interface NewRedemption extends ExternalRef {
  voucherId: string;
  keyId: string;
  attemptId: string;
  ticket: string | null;
  redeemCode: string;
}

/**
 * Statements that insert redemptions. They raise an error when another transaction has redeemed one of the references,
 * or has moved `closed_until` past `redeemedAt`.
 */
export function insertRedemptions(redemptions: readonly NewRedemption[], redeemedAt: Date): PreparedStatements {
  if (redemptions.length === 0) return [];
  const columns = ["voucherId", "organizationId", "keyId", "attemptId", "ticket", "redeemCode", "externalRef"] as const;
  return [insertRows({ redeemedAt, ...columnsOf(redemptions, ...columns) })];
}

/** At most `limit` redemptions of an organization, older than `before` if given, newest first, for operators. */
export function selectLastRedemptions(
  db: Queryable,
  organizationId: string,
  before: ListPosition | null,
  limit: number,
): Promise<LastRedemption[]> {
  return selectLastPage(db, {
    organizationId,
    beforeTime: before?.redeemedAt ?? null,
    beforeVoucherId: before?.voucherId ?? "",
    limit,
  });
}

/** A reference as the first read of an attempt saw it. If it was ended after that read, the attempt must not redeem. */
interface SeenReference extends ExternalRef {
  /** The reference's version in `reference_ends`. 0 if there is none. */
  seenEnd: number;
  generation: number;
}

/**
 * Locks the references of attempts until the transaction ends, so that no other transaction ends them. Then reads
 * whether they were redeemed or ended. Does not wait. Each result has the attempt's reference. `isEnded`: the reference
 * was ended since the attempt's first read, or another transaction is ending it.
 */
export async function lockReferences(
  tx: Transaction,
  attempts: readonly SeenReference[],
): Promise<{ n: number; isEnded: boolean; confirmation: Confirmation | null }[]> {
  const [held, known] = await Promise.all([
    tryLockShared(tx, columnsOf(attempts, "organizationId", "externalRef")),
    findReferences(tx, columnsOf(attempts, "organizationId", "externalRef", "seenEnd", "generation")),
  ]);
  return [...known, ...held.map((n) => ({ n, isEnded: true, confirmation: null }))];
}

/**
 * Locks references so that no other transaction redeems or ends them before this transaction has ended. Does not wait.
 * Returns the positions of the references that another transaction has locked. The references must be distinct.
 */
export async function lockReferencesToEnd(tx: Transaction, refs: readonly ExternalRef[]): Promise<Set<number>> {
  const [held] = await Promise.all([
    tryLockToEnd(tx, columnsOf(refs, "organizationId", "externalRef")),
    keepGeneration(tx),
  ]);
  return new Set(held);
}

/**
 * Statements that keep all earlier attempts under references from redeeming. {@link lockReferencesToEnd} must have
 * locked the references, and a later statement must have found no redemption of them.
 */
export const endReferences = sql.prepareAll("end_references", { organizationId: text, externalRef: text });

/**
 * Begins a new generation of `reference_ends` if the current one is an hour old. Deletes at most `limit` rows of
 * generations that attempts no longer need, and returns their number.
 */
export async function deleteOldEnds(pool: pg.Pool, limit: number): Promise<number> {
  await beginGeneration(pool, latestTime(pool));
  return deleteEnds(pool, limit);
}
