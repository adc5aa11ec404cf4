import type pg from "pg";
import { onTestFinished } from "vitest";
import { lockEntity } from "../../src/acts/db/audit-entries.ts";
import { until, untilOr } from "./until.ts";

/** Runs `work` during a transaction of the test, and rolls back everything that `work` did not commit. */
export async function besideTransaction<T>(db: pg.Pool, work: (outside: pg.PoolClient) => Promise<T>): Promise<T> {
  const outside = await db.connect();
  try {
    await outside.query("BEGIN");
    return await work(outside);
  } finally {
    await outside.query("ROLLBACK");
    outside.release();
  }
}

/** Runs a statement, or several if there are no values, that triggers would refuse. */
export async function bypassTriggers(db: pg.Pool, statement: string, values?: unknown[]): Promise<void> {
  await besideTransaction(db, async (outside) => {
    await outside.query("SET LOCAL session_replication_role = replica");
    await outside.query(statement, values);
    await outside.query("COMMIT");
  });
}

/** Locks the vouchers' rows with the same lock as the service. */
export async function lockRows(outside: pg.PoolClient, voucherIds: readonly string[]): Promise<void> {
  await outside.query("SELECT id FROM vouchers WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", [voucherIds]);
}

/** Locks an organization's reference for a batch with the same lock as the service, so that issues under it wait. */
export async function lockIssueReference(outside: pg.PoolClient, organizationId: string, issueRef: string) {
  const lock = "SELECT pg_advisory_xact_lock(hashtext('issue ' || $1), hashtext($2))";
  await outside.query(lock, [organizationId, issueRef]);
}

/** Runs `work` while a transaction of the test locks the rows of these vouchers. */
export async function whileLocked<T>(db: pg.Pool, voucherIds: readonly string[], work: () => Promise<T>): Promise<T> {
  return besideTransaction(db, async (outside) => {
    await lockRows(outside, voucherIds);
    return work();
  });
}

/** Starts a call that exports a batch, and runs `happen` while it waits for the first codes. Returns the response. */
export function exportWhileLocked<T>(
  db: pg.Pool,
  batchId: string,
  call: () => Promise<T>,
  happen: () => Promise<unknown>,
): Promise<T> {
  return besideTransaction(db, async (holder) => {
    // On a busy machine, an earlier call can still count as waiting after its lock is free. The test first lets that
    // call continue.
    await until(async () => (await countWaiting(db)) === 0);
    // The call's look-up of the batch also reads vouchers, so the test first stops the call at its audit entry.
    await lockEntity(holder, { type: "Batch", id: batchId });
    const response = call();
    await untilWaiting(db, 1);
    return besideTransaction(db, async (outside) => {
      await outside.query("LOCK TABLE vouchers IN ACCESS EXCLUSIVE MODE");
      await holder.query("ROLLBACK");
      await until(async () => (await waitingFor(db, "%FROM vouchers%")) > 0);
      await happen();
      return response;
    });
  });
}

async function waitingFor(db: pg.Pool, statement: string): Promise<number> {
  const { rows } = await db.query<{ waiting: number }>(
    `SELECT count(*)::int AS waiting FROM pg_stat_activity WHERE ${IS_WAITING} AND query LIKE $1`,
    [statement],
  );
  return rows[0]?.waiting ?? 0;
}

/**
 * Makes the next statement that inserts into a table wait, before or after its row triggers, until the test releases it
 * or ends. This wait may last as long as a statement may, which is longer than a wait for a lock. Use it at most once
 * in a test.
 */
export async function holdNextInsert(db: pg.Pool, when: "BEFORE" | "AFTER", table: string) {
  await db.query(`
    CREATE SEQUENCE inserts;
    CREATE TABLE let_go ();
    CREATE FUNCTION hold_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
      IF nextval('inserts') = 1 THEN
        WHILE NOT EXISTS (SELECT FROM let_go) LOOP PERFORM pg_sleep(0.01); END LOOP;
      END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER hold_insert ${when} INSERT ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION hold_insert()`);
  const letGo = () => db.query("INSERT INTO let_go DEFAULT VALUES");
  onTestFinished(async () => {
    await letGo();
    await db.query("DROP FUNCTION hold_insert CASCADE; DROP TABLE let_go; DROP SEQUENCE inserts");
  });
  return {
    letGo,
    /** Waits until the statement waits. */
    isHeld: () => until(async () => (await db.query("SELECT is_called FROM inserts")).rows[0]?.is_called),
  };
}

/** Makes a pool of the service wait for locks as long as a statement may run, so that a busy test sees the wait. */
export function waitLongForLocks(pool: pg.Pool): void {
  pool.on("acquire", (client) => void client.query("SET lock_timeout = 0"));
}

/** SQL for the condition that a connection to this database waits for a lock. */
const IS_WAITING = "datname = current_database() AND wait_event_type = 'Lock'";

/** The first word of a connection's name, which says what kind of process opened the connection. */
const ROLE = "split_part(application_name, ' ', 1)";
type Role = "api" | "worker" | "test";

/** Counts the connections to this database that wait for a lock, of all processes or of one kind. */
export async function countWaiting(db: pg.Pool, role: Role | null = null): Promise<number> {
  const { rows } = await db.query<{ waiting: number }>({
    // Tests repeat this statement every few milliseconds, and planning it takes longer than running it.
    name: "count_waiting",
    text: `SELECT count(*)::int AS waiting FROM pg_stat_activity
            WHERE ${IS_WAITING} AND ($1::text IS NULL OR ${ROLE} = $1)`,
    values: [role],
  });
  return rows[0]?.waiting ?? 0;
}

/** Waits until at least `count` connections to this database wait for a lock. */
export async function untilWaiting(db: pg.Pool, count: number, role: Role | null = null): Promise<void> {
  await until(async () => (await countWaiting(db, role)) >= count);
}

/** Waits until `count` connections wait for a lock. Returns null if `call` ends first, as on a busy machine. */
export function untilWaitingOr(call: Promise<unknown>, db: pg.Pool, count: number, role: Role | null = null) {
  return untilOr(call, async () => (await countWaiting(db, role)) >= count);
}

/** How long a reserve, a release, a claim or a buy waits for a lock. Milliseconds. */
export const LOCK_WAIT_MS = 3_000;

/** Lists the current lock waits, identified by connection and start of the statement. */
export async function currentWaits(db: pg.Pool, role: "api" | "worker"): Promise<string[]> {
  const { rows } = await db.query<{ wait: string }>(
    `SELECT pid || ' ' || query_start AS wait FROM pg_stat_activity WHERE ${IS_WAITING} AND ${ROLE} = $1`,
    [role],
  );
  return rows.map(({ wait }) => wait);
}

/** The duration of a worker's longest current lock wait, or 0 without one. */
export async function longestWaitMs(db: pg.Pool): Promise<number> {
  const { rows } = await db.query<{ ms: number }>(
    `SELECT coalesce(max(extract(epoch FROM clock_timestamp() - query_start) * 1000), 0)::float8 AS ms
       FROM pg_stat_activity
      WHERE ${IS_WAITING} AND ${ROLE} = 'worker'`,
  );
  return rows[0]?.ms ?? 0;
}

/** Waits until the database's clock is a millisecond past a moment, because the service decides in milliseconds. */
export async function untilPast(db: pg.Pool, moment: Date): Promise<void> {
  await until(async () => {
    const { rows } = await db.query<{ past: boolean }>(
      "SELECT date_trunc('milliseconds', clock_timestamp()) > $1::timestamptz AS past",
      [moment],
    );
    return rows[0]?.past;
  });
}

/**
 * Advances `closed_until` past the current time, and returns this time. The list of redemptions is complete up to it if
 * no redemption's transaction is open.
 */
export async function closeRedemptions(db: pg.Pool): Promise<Date> {
  const moment = await databaseTime(db);
  await untilPast(db, moment);
  await db.query(`UPDATE redemptions_closed SET closed_until = date_trunc('milliseconds', clock_timestamp())`);
  return moment;
}

/** Reads the database's clock. */
export async function databaseTime(db: pg.Pool): Promise<Date> {
  const { rows } = await db.query<{ now: Date }>("SELECT date_trunc('milliseconds', clock_timestamp()) AS now");
  return rows[0]?.now as Date;
}
