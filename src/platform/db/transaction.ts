import pg from "pg";
import { cancel, isNoAnswer, RefusedConnection } from "./client.ts";
import type { Transaction } from "./pool.ts";
import { isUndefined, UnusableDatabase } from "./schema.ts";
import type { PreparedStatements } from "./statements.ts";

/** Maximum wait for a COMMIT. Less than the time that a process waits for a reply. Milliseconds. */
const COMMIT_MAX_MS = 10_000;
/** SQLSTATEs (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const SERIALIZATION_FAILURE = "40001";
const DEADLOCK_DETECTED = "40P01";
const LOCK_NOT_AVAILABLE = "55P03";
const READ_ONLY_TRANSACTION = "25006";
const IN_FAILED_TRANSACTION = "25P02";
const UNIQUE_VIOLATION = "23505";
const PROGRAM_LIMIT_EXCEEDED = "54000";
const INSUFFICIENT_PRIVILEGE = "42501";
/**
 * Errors that mean that the session no longer fits the server: the server is read-only now, a migration has changed the
 * result of a prepared statement, or a pooler has lost a prepared statement. A new connection gets a new session.
 */
const STALE_SESSION = [READ_ONLY_TRANSACTION, "0A000", "26000"];
/**
 * The state on which the transaction decided has changed since. Raised by `assert_row_count`, and by triggers for daily
 * limits, `closed_until` and erased references.
 */
const DECIDED_ON_OLD_STATE = "VS001";
/** The SQLSTATE of a notice that is no warning. */
const SUCCESSFUL_COMPLETION = "00000";

/** Runs `work` in one READ COMMITTED transaction on its own connection. Rolls back when it throws. */
export function inTransaction<T>(pool: pg.Pool, work: (tx: Transaction) => Promise<T>): Promise<T> {
  return readThenWrite(
    pool,
    async () => undefined,
    async (_seen, tx) => ({ result: await work(tx), writes: [] }),
  );
}

/** Runs statements that only read on one snapshot of the database, so that their results are consistent. */
export function onSnapshot<T>(pool: pg.Pool, work: (tx: Transaction) => Promise<T>): Promise<T> {
  return inTransaction(pool, async (tx) => {
    await tx.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
    return work(tx);
  });
}

/** The result of a transaction, and the statements that must be committed before the result counts. */
export interface Decided<T> {
  result: T;
  writes: PreparedStatements;
  /** Called after the commit. If it throws, the process logs a warning: the transaction is still committed. */
  afterCommit?: (() => void) | undefined;
}

/**
 * Runs `read` and `decide` in one READ COMMITTED transaction on its own connection, and commits the statements that
 * `decide` returns. Rolls back when `read` or `decide` throws or a statement fails, and throws the first such error. If
 * Postgres warns at COMMIT, the result is unknown, as after a lost connection.
 *
 * The statements of `read` are sent together with BEGIN, and the writes together with COMMIT. Each takes one round trip
 * if the pool pipelines. The server runs the statements in order, each with its own snapshot. When one fails, all later
 * ones fail too. `read` must send all of its statements before it awaits a result. It may only lock and read, because
 * its statements run outside a transaction if BEGIN fails.
 */
export async function readThenWrite<Seen, T>(
  pool: pg.Pool,
  read: (tx: Transaction) => Promise<Seen>,
  decide: (seen: Seen, tx: Transaction) => Promise<Decided<T>>,
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  let warning: string | undefined;
  let firstError: Error | undefined;
  const onError = (error: Error) => {
    firstError ??= error;
  };
  const onNotice = ({ code, message }: { code: string | undefined; message: string | undefined }) => {
    if (code !== SUCCESSFUL_COMPLETION) warning = message;
  };
  client.connection.on("errorMessage", onError);
  try {
    const [, seen] = await Promise.all([client.query("BEGIN"), read(client)]);
    const { result, writes, afterCommit } = await decide(seen, client);
    client.on("notice", onNotice);
    await commit(client, writes);
    // Postgres also warns when it stops waiting for the synchronous standbys. The transaction is then committed, but a
    // failover may undo it.
    if (warning !== undefined)
      throw new UnusableDatabase("unavailable", `The server committed with a warning: ${warning}`);
    tell(afterCommit);
    return result;
  } catch (error) {
    // ROLLBACK also waits until all statements are done. After COMMIT, it has nothing else to do. If it fails, the
    // connection is not returned to the pool.
    await client.query("ROLLBACK").catch((rollbackError: Error) => {
      broken = rollbackError;
    });
    // After the first error, the server refuses the statements that were sent with it. The rejection of such a
    // statement may arrive here first.
    const cause = hasSqlState(error, IN_FAILED_TRANSACTION) ? (firstError ?? error) : error;
    if (isStale(cause)) broken = cause as Error;
    throw cause;
  } finally {
    client.connection.off("errorMessage", onError);
    client.off("notice", onNotice);
    client.release(broken);
  }
}

/**
 * Sends the writes together with COMMIT. No timeout of Postgres limits how long a COMMIT waits for standbys, and the
 * session keeps waiting even if its client disconnects. So the client cancels the wait after some time. COMMIT then
 * returns with a warning.
 */
async function commit(client: pg.PoolClient, writes: PreparedStatements): Promise<void> {
  let cancelled: Promise<void> | undefined;
  const giveUp = setTimeout(() => {
    cancelled = cancel(client);
  }, COMMIT_MAX_MS);
  try {
    await Promise.all([...writes.map((statement) => client.query(statement)), client.query("COMMIT")]);
  } finally {
    clearTimeout(giveUp);
    // Waits for the cancellation, because a late one could hit the next user of this connection.
    await cancelled;
  }
}

/** Calls a listener. Its failure must not make the committed transaction look failed. */
function tell(afterCommit: (() => void) | undefined): void {
  try {
    afterCommit?.();
  } catch (error) {
    process.emitWarning(error as Error);
  }
}

/** Runs statements one after another in a transaction that continues. Also works without pipelining. */
export async function write(tx: Transaction, writes: PreparedStatements): Promise<void> {
  for (const statement of writes) await tx.query(statement);
}

/** Sets how long the transaction waits for each lock, in whole milliseconds. */
export async function waitForLocks(tx: Transaction, timeoutMs: number): Promise<void> {
  await tx.query(`SET LOCAL lock_timeout = ${timeoutMs}`);
}

/**
 * Whether the error is a conflict with another transaction or, for a read on a standby, with the standby's recovery. A
 * repeat may succeed.
 */
export function isRetryable(error: unknown): boolean {
  return [SERIALIZATION_FAILURE, DEADLOCK_DETECTED, DECIDED_ON_OLD_STATE].some((code) => hasSqlState(error, code));
}

/** Whether a lock was not granted within `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return hasSqlState(error, LOCK_NOT_AVAILABLE);
}

/** Whether a statement was refused because it would change too many rows. */
export function isLimitExceeded(error: unknown): boolean {
  return hasSqlState(error, PROGRAM_LIMIT_EXCEEDED);
}

/** Whether the error is a violation of this unique constraint. */
export function violates(error: unknown, constraint: string): boolean {
  return hasSqlState(error, UNIQUE_VIOLATION) && (error as pg.DatabaseError).constraint === constraint;
}

function hasSqlState(error: unknown, code: string): boolean {
  return error instanceof pg.DatabaseError && error.code === code;
}

/** Whether the process's role lacks a right. */
export function isForbidden(error: unknown): error is pg.DatabaseError {
  return hasSqlState(error, INSUFFICIENT_PRIVILEGE);
}

/**
 * Whether the database is unreachable, starting, stopping, full, damaged, too slow or not the primary, or refuses the
 * login. The outcome of a transaction is then unknown.
 */
export function isDatabaseAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof UnusableDatabase) return true;
  return error instanceof pg.DatabaseError
    ? /^(08|28|3D|53|57|58|XX|25006|25P0[34])/.test(String(error.code))
    : isNoAnswer(error);
}

/** Whether the database is the cause, not the call or the program. A later call may succeed. */
export function isDatabaseUnavailable(error: unknown): boolean {
  return isDatabaseAway(error) || isForbidden(error) || isUndefined(error) || isStale(error);
}

/** Whether the connection must not return to the pool, because its session no longer fits the server. */
function isStale(error: unknown): boolean {
  return STALE_SESSION.some((code) => hasSqlState(error, code));
}

/** Whether the server is read-only. */
export function isReadOnly(error: unknown): boolean {
  return hasSqlState(error, READ_ONLY_TRANSACTION);
}

/**
 * The error that readiness and the log report when the server's disk is full or failing, when its memory does not
 * suffice, or when the database lacks a table or a right. Null for other errors.
 */
export function refusalOf(error: unknown): UnusableDatabase | null {
  if (error instanceof RefusedConnection) return error;
  const sentence = sayRefusal(error);
  return sentence === null ? null : new UnusableDatabase("unavailable", sentence, { cause: error });
}

function sayRefusal(error: unknown): string | null {
  if (isForbidden(error))
    return `The database role lacks a right: ${error.message}. Run as the owner: voucherctl db roles`;
  if (isUndefined(error))
    return `The database lacks what its migrations made: ${error.message}. Run: npm run migrate, or restore a backup.`;
  const isRefused = error instanceof pg.DatabaseError && /^(53[124]00|58)/.test(String(error.code));
  return isRefused ? `Postgres refuses writes: ${error.message}.` : null;
}

/** Whether a single item of a batch can have caused the error. */
export function mayBeFromOneItem(error: unknown): boolean {
  return !isDatabaseUnavailable(error) && !isLockTimeout(error);
}

/** Maximum number of attempts in one call. Each half of a split batch gets this number again. */
const ATTEMPTS_MAX = 3;

/** Runs a transaction, and again after a conflict with another. `run` must read its state in the transaction. */
export async function retryConflicts<T>(run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      if (!isRetryable(error) || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}
