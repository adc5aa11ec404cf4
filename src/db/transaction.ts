import pg from "pg";
import type { Transaction } from "./pool.ts";

/** SQLSTATE of what a writing transaction may meet and act on (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const SERIALIZATION_FAILURE = "40001";
const DEADLOCK_DETECTED = "40P01";
const LOCK_NOT_AVAILABLE = "55P03";

/** Runs `work` in one READ COMMITTED transaction on a connection of its own. Rolls back when it throws. */
export function inTransaction<T>(pool: pg.Pool, work: (tx: Transaction) => Promise<T>): Promise<T> {
  return lookThenWrite(pool, async () => undefined, work);
}

/**
 * Runs `look` and then, with what it saw, `work` in one READ COMMITTED transaction on a connection of its own. Rolls back when one
 * of them throws.
 *
 * What `look` asks is sent together with BEGIN. It only locks and reads, and sends all its statements before it waits for any
 * answer: if BEGIN fails they have run in no transaction, and nothing may have come of it.
 *
 * Statements that are sent together take one trip to the server, which runs them in their order, each seeing what was committed
 * when it began. When one fails so do all behind it, so `Promise.all` throws what the first one met.
 */
export async function lookThenWrite<Seen, T>(
  pool: pg.Pool,
  look: (tx: Transaction) => Promise<Seen>,
  work: (tx: Transaction, seen: Seen) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    const [, seen] = await Promise.all([client.query("BEGIN"), look(client)]);
    const result = await work(client, seen);
    await client.query("COMMIT");
    return result;
  } catch (error) {
    // A connection that cannot even roll back is not given back to the pool.
    await client.query("ROLLBACK").catch((rollbackError: Error) => {
      broken = rollbackError;
    });
    throw error;
  } finally {
    client.release(broken);
  }
}

/** Lets the transaction wait this long for each lock, instead of the little that its pool allows. */
export async function waitForLocks(tx: Transaction, timeoutMs: number): Promise<void> {
  await tx.query("SELECT set_config('lock_timeout', $1, true)", [String(timeoutMs)]);
}

/** Two transactions got in each other's way and one was ended: the same work may succeed when it is done again. */
export function isRetryable(error: unknown): boolean {
  return hasSqlState(error, SERIALIZATION_FAILURE) || hasSqlState(error, DEADLOCK_DETECTED);
}

/** A lock was not granted within `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return hasSqlState(error, LOCK_NOT_AVAILABLE);
}

/** Whether a unique constraint of this name was hit. */
export function violates(error: unknown, constraint: string): boolean {
  return hasSqlState(error, "23505") && (error as pg.DatabaseError).constraint === constraint;
}

function hasSqlState(error: unknown, code: string): boolean {
  return error instanceof pg.DatabaseError && error.code === code;
}

/** The database is away, starting, stopping, out of connections or too slow: the same call may succeed later. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = (error as { code?: unknown }).code;
  if (error instanceof pg.DatabaseError) return /^(08|57|53)/.test(String(code));
  if (typeof code === "string") return /^E(CONN|PIPE|HOST|NET|NOTFOUND|TIMEDOUT|AI_)/.test(code);
  return /timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error/.test(
    error.message,
  );
}
