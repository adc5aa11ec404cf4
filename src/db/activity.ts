import type pg from "pg";
import { bigint, boolean, integer, orNull, type Row, text, timestamptz } from "./columns.ts";
import type { Queryable } from "./pool.ts";
import { execute, loadStatements, readRequiredRow, readRows } from "./statements.ts";
import { inTransaction } from "./transaction.ts";

const STOCK = {
  batchId: text,
  product: text,
  brand: text,
  organizationId: text,
  /** One more than the limit stands for more. */
  left: integer,
  endsAt: timestamptz,
  /** At the pace of the last day. Null if nothing was acquired, or if the stock was not counted to its end. */
  runsOutAt: orNull(timestamptz),
};

const POSTGRES = {
  version: text,
  isStandby: boolean,
  standbyNames: text,
  /** Standbys that are connected. */
  streaming: integer,
  lagMs: orNull(bigint),
  connections: integer,
  connectionsMax: integer,
  sizeBytes: bigint,
};

export const sql = loadStatements(new URL("./activity.sql", import.meta.url), {
  find_trusted_at: { trustedAt: orNull(timestamptz) },
  lock_activity: { from: timestamptz, isReset: boolean },
  delete_activity: {},
  delete_acquired: {},
  count_activity: {},
  count_acquired: {},
  move_activity: {},
  read_activity: {
    now: timestamptz,
    completeUntil: timestamptz,
    span: orNull(text),
    at: orNull(timestamptz),
    redemptions: orNull(integer),
    claims: orNull(integer),
  },
  read_stock: STOCK,
  select_failing_endpoints: { id: text, url: text, organization: text, since: orNull(timestamptz), enabled: boolean },
  select_broken_chains: { voucherId: text, since: timestamptz },
  read_postgres: POSTGRES,
});

/** Hours whose counts are kept. */
const KEPT_HOURS = 72;
/** What one transaction counts at most: at 1 000 redemptions a second, 600 000. Milliseconds. */
const STEP_MS = 600_000;

const HOUR_MS = 3_600_000;
const hourOf = (at: Date) => Math.floor(at.getTime() / HOUR_MS);

/** When an operator last said that the clock is right. */
export async function findTrustedAt(db: Queryable): Promise<Date | null> {
  return (await readRequiredRow(db, sql.find_trusted_at, [])).trustedAt;
}

/**
 * Adds what happened since the last step to the counts, in one transaction, up to a time before which redemptions, claims and purchases are
 * complete. Returns whether there is more to count.
 * @param trustedAt read before `until`.
 */
export function countNextActivity(pool: pg.Pool, until: Date, trustedAt: Date | null): Promise<boolean> {
  return inTransaction(pool, async (tx) => {
    const { from, isReset } = await readRequiredRow(tx, sql.lock_activity, [trustedAt, until, KEPT_HOURS]);
    if (from >= until && !isReset) return false;
    const end = new Date(Math.max(from.getTime(), Math.min(until.getTime(), from.getTime() + STEP_MS)));
    // Counts of another hour are deleted once an hour.
    if (isReset || hourOf(from) !== hourOf(end)) {
      const kept = new Date(end.getTime() - KEPT_HOURS * HOUR_MS);
      const before = isReset ? from : new Date(end.getTime() + HOUR_MS);
      for (const statement of [sql.delete_activity, sql.delete_acquired]) await execute(tx, statement, [kept, before]);
    }
    for (const statement of [sql.count_activity, sql.count_acquired]) await execute(tx, statement, [from, end]);
    await execute(tx, sql.move_activity, [end, trustedAt]);
    return end < until;
  });
}

/** Redemptions and claims in a minute or an hour that began `at`. */
export interface ActivityCount {
  at: Date;
  redemptions: number;
  claims: number;
}

/** The counts of an organization, or of all but sandboxes, of the last minutes and hours; those without any are left out. */
export async function readActivity(db: Queryable, organizationId: string | null) {
  const rows = await readRows(db, sql.read_activity, [organizationId]);
  const [{ now, completeUntil }] = rows as [(typeof rows)[number]];
  const ofSpan = (span: string): ActivityCount[] =>
    rows.flatMap(({ at, redemptions, claims, ...row }) =>
      row.span === span && at !== null ? [{ at, redemptions: redemptions ?? 0, claims: claims ?? 0 }] : [],
    );
  return { now, completeUntil, minutes: ofSpan("minute"), hours: ofSpan("hour") };
}

/** The stock of a batch with an open window. */
export type Stock = Row<typeof STOCK>;

/** The stock of the newest `batchesMax` batches with an open window; their vouchers are counted up to `leftMax`. */
export function readStock(db: Queryable, organizationId: string | null, batchesMax: number, leftMax: number) {
  return readRows(db, sql.read_stock, [organizationId, batchesMax, leftMax]);
}

/** At most `limit` endpoints that fail or were disabled for failing. */
export function selectFailingEndpoints(db: Queryable, limit: number) {
  return readRows(db, sql.select_failing_endpoints, [limit]);
}

/** At most `limit` chains that are broken. */
export function selectBrokenChains(db: Queryable, limit: number) {
  return readRows(db, sql.select_broken_chains, [limit]);
}

/** The state of Postgres. */
export type PostgresState = Row<typeof POSTGRES>;

/** Reads the state of Postgres. */
export function readPostgres(db: Queryable): Promise<PostgresState> {
  return readRequiredRow(db, sql.read_postgres, []);
}
