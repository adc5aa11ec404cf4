import pg from "pg";
import { ReadOnlyServer, type Transaction } from "./pool.ts";
import type { Writes } from "./statements.ts";

/** SQLSTATE of what a writing transaction may meet and act on (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const SERIALIZATION_FAILURE = "40001";
const DEADLOCK_DETECTED = "40P01";
const LOCK_NOT_AVAILABLE = "55P03";
const READ_ONLY_TRANSACTION = "25006";
/** Raised by `demand_rows`: what was decided on is not so any more. */
const DECIDED_ON_OLD_STATE = "VS001";

/** Runs `work` in one READ COMMITTED transaction on a connection of its own. Rolls back when it throws. */
export function inTransaction<T>(pool: pg.Pool, work: (tx: Transaction) => Promise<T>): Promise<T> {
  return lookThenWrite(
    pool,
    async () => undefined,
    async (_seen, tx) => ({ result: await work(tx), writes: [] }),
  );
}

/** What a transaction comes to, once its writes are committed. */
export interface Decided<T> {
  result: T;
  writes: Writes;
}

/**
 * Runs `look` and then, with what it saw, `decide` in one READ COMMITTED transaction on a connection of its own, and commits what
 * that wants written. Rolls back when one of them throws or a write raises. Two trips to the server, when `decide` asks nothing and the
 * pool pipelines.
 *
 * What `look` asks is sent together with BEGIN. It only locks and reads, and sends all its statements before it waits for any
 * answer: if BEGIN fails they have run in no transaction, and nothing may have come of it.
 *
 * The writes are sent together with COMMIT, which rolls back when the server refused one of them.
 *
 * Statements that are sent together take one trip to the server, which runs them in their order, each seeing what was committed
 * when it began. When one fails so do all behind it, so `Promise.all` throws what the first one met.
 */
export async function lookThenWrite<Seen, T>(
  pool: pg.Pool,
  look: (tx: Transaction) => Promise<Seen>,
  decide: (seen: Seen, tx: Transaction) => Promise<Decided<T>>,
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    const [, seen] = await Promise.all([client.query("BEGIN"), look(client)]);
    const { result, writes } = await decide(seen, client);
    await Promise.all([...writes.map((statement) => client.query(statement)), client.query("COMMIT")]);
    return result;
  } catch (error) {
    // Behind a COMMIT there is nothing to roll back, but the answer comes when all statements have theirs. A connection that cannot even
    // do that is not given back to the pool.
    await client.query("ROLLBACK").catch((rollbackError: Error) => {
      broken = rollbackError;
    });
    // The server was the primary when this connection was opened.
    if (hasSqlState(error, READ_ONLY_TRANSACTION)) broken = error as Error;
    throw error;
  } finally {
    client.release(broken);
  }
}

/** Writes inside a transaction that goes on, one statement after another: administration's pool does not pipeline. */
export async function write(tx: Transaction, writes: Writes): Promise<void> {
  for (const statement of writes) await tx.query(statement);
}

/** Lets the transaction wait this long for each lock, instead of the little that its pool allows. */
export async function waitForLocks(tx: Transaction, timeoutMs: number): Promise<void> {
  await tx.query("SELECT set_config('lock_timeout', $1, true)", [String(timeoutMs)]);
}

/** Transactions got in each other's way: the same work may succeed when it is done again, on what the others left. */
export function isRetryable(error: unknown): boolean {
  return [SERIALIZATION_FAILURE, DEADLOCK_DETECTED, DECIDED_ON_OLD_STATE].some((code) => hasSqlState(error, code));
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

/**
 * The database is away, starting, stopping, out of connections, too slow, not the primary, or has given up an idle transaction: the same
 * call may succeed later.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof ReadOnlyServer) return true;
  const code = (error as { code?: unknown }).code;
  if (error instanceof pg.DatabaseError) return /^(08|57|53|25006|25P03)/.test(String(code));
  if (typeof code === "string") return /^E(CONN|PIPE|HOST|NET|NOTFOUND|TIMEDOUT|AI_)/.test(code);
  return /timeout exceeded when trying to connect|Query read timeout|Connection terminated|Client has encountered a connection error/.test(
    error.message,
  );
}
