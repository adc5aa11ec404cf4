import type pg from "pg";
import { findCompleteUntil } from "../../core/redeem/db/redemptions.ts";
import { arrayOf, bigint, boolean, integer, orNull, type Row, text, timestamptz } from "../../platform/db/columns.ts";
import type { Queryable } from "../../platform/db/pool.ts";
import { Statements } from "../../platform/db/statements.ts";
import { inTransaction } from "../../platform/db/transaction.ts";

/** The stock of a batch with an open window for claims or purchases. */
const STOCK = {
  batchId: text,
  product: text,
  brand: text,
  organizationId: text,
  /** The number of vouchers left, counted up to the limit. One more than the limit stands for any larger number. */
  left: integer,
  endsAt: timestamptz,
  /**
   * When the stock runs out at the pace of the last day. Null if there were fewer than ten sales in less than six
   * hours, or if the count of the stock stopped at its limit.
   */
  runsOutAt: orNull(timestamptz),
};
export type Stock = Row<typeof STOCK>;

const POSTGRES = {
  version: text,
  isStandby: boolean,
  standbyNames: text,
  /** The names of the connected standbys. */
  standbys: arrayOf(text),
  lagMs: orNull(bigint),
  connections: integer,
  connectionsMax: integer,
  sizeBytes: bigint,
};
export type PostgresState = Row<typeof POSTGRES>;

export const sql = new Statements(new URL("./activity.sql", import.meta.url));

const findTrustedAt = sql.requiredValue("find_trusted_at", { trustedAt: orNull(timestamptz) });
export const readStock = sql.rows("read_stock", STOCK, {
  organizationId: orNull(text),
  batchesMax: integer,
  leftMax: integer,
  soonDays: integer,
});
export const selectBrokenChains = sql.rows(
  "select_broken_chains",
  { voucherId: text, since: timestamptz },
  { limit: integer },
);
export const selectUsedCaps = sql.rows(
  "select_used_caps",
  { keyId: text, organizationId: orNull(text), isReached: boolean },
  { limit: integer },
);
export const readPostgres = sql.requiredRow("read_postgres", POSTGRES);

const lockActivity = sql.requiredRow(
  "lock_activity",
  { from: timestamptz, isReset: boolean },
  { clockTrustedAt: orNull(timestamptz), until: timestamptz, hoursMax: integer },
);
const deleteCounts = [
  sql.execute("delete_activity", { from: timestamptz, before: timestamptz }),
  sql.execute("delete_acquired", { from: timestamptz, before: timestamptz }),
];
const addCounts = [
  sql.execute("count_activity", { from: timestamptz, until: timestamptz }),
  sql.execute("count_acquired", { from: timestamptz, until: timestamptz }),
];
const moveActivity = sql.execute("move_activity", { countedUntil: timestamptz, clockTrustedAt: orNull(timestamptz) });
const selectActivity = sql.rows(
  "read_activity",
  {
    now: timestamptz,
    completeUntil: timestamptz,
    span: orNull(text),
    at: orNull(timestamptz),
    redemptions: orNull(integer),
    claims: orNull(integer),
  },
  { organizationId: orNull(text) },
);

/** Number of hours for which counts are kept. */
const KEPT_HOURS = 72;
/** Length of the period that one transaction counts: 600 000 redemptions at 1 000 a second. Milliseconds. */
const STEP_MS = 600_000;

const HOUR_MS = 3_600_000;
const hourOf = (at: Date) => Math.floor(at.getTime() / HOUR_MS);

/**
 * In one transaction, counts what happened since the last step, up to `until` or for one step. Before `until`,
 * redemptions, claims and purchases must be complete. Returns whether there is more to count.
 */
export function countNextActivity(pool: pg.Pool, until: Date, trustedAt: Date | null): Promise<boolean> {
  return inTransaction(pool, async (tx) => {
    const { from, isReset } = await lockActivity(tx, { clockTrustedAt: trustedAt, until, hoursMax: KEPT_HOURS });
    if (from >= until && !isReset) return false;
    const end = new Date(Math.max(from.getTime(), Math.min(until.getTime(), from.getTime() + STEP_MS)));
    // Deletes old counts once an hour. After a reset, which goes back in time, also deletes the counts to repeat.
    if (isReset || hourOf(from) !== hourOf(end)) {
      const kept = new Date(end.getTime() - KEPT_HOURS * HOUR_MS);
      const before = isReset ? from : new Date(end.getTime() + HOUR_MS);
      for (const deleteOther of deleteCounts) await deleteOther(tx, { from: kept, before });
    }
    for (const add of addCounts) await add(tx, { from, until: end });
    await moveActivity(tx, { countedUntil: end, clockTrustedAt: trustedAt });
    return end < until;
  });
}

/** Counts redemptions and claims by minute and hour, up to the time before which lists of redemptions are complete. */
export async function countActivity({ pool }: { pool: pg.Pool }, untilMs: number): Promise<void> {
  const trustedAt = await findTrustedAt(pool);
  const completeUntil = await findCompleteUntil(pool);
  while ((await countNextActivity(pool, completeUntil, trustedAt)) && performance.now() < untilMs);
}

/** The number of redemptions and of claims in the minute or hour that began at `at`. */
export interface ActivityCount {
  at: Date;
  redemptions: number;
  claims: number;
}

/**
 * The counts of an organization, or of all organizations except sandboxes, in the last minutes and hours. Minutes and
 * hours without counts are left out.
 */
export async function readActivity(db: Queryable, organizationId: string | null) {
  const rows = await selectActivity(db, organizationId);
  const [{ now, completeUntil }] = rows as [(typeof rows)[number]];
  const ofSpan = (span: string): ActivityCount[] =>
    rows.flatMap(({ at, redemptions, claims, ...row }) =>
      row.span === span && at !== null ? [{ at, redemptions: redemptions ?? 0, claims: claims ?? 0 }] : [],
    );
  return { now, completeUntil, minutes: ofSpan("minute"), hours: ofSpan("hour") };
}
