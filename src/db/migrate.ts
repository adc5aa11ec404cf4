import { setInterval, setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { migrate } from "postgres-migrations";
import { MIGRATIONS } from "./schema.ts";
import { isLockTimeout, isRetryable } from "./transaction.ts";

/** Longest wait for one lock. All later statements on the table queue for as long. Milliseconds. */
const LOCK_TIMEOUT_MS = 1_000;
/** Pause between two attempts, in which the queued statements run. Milliseconds. */
const PAUSE_MS = 2_000;
/** Longest wait for a lock over all attempts. Milliseconds. */
const WAIT_MAX_MS = 600_000;
/** How often to check which session holds the lock that the run waits for. Milliseconds. */
const WATCH_EVERY_MS = 300;

export interface MigrateOptions {
  directory?: string;
  waitMaxMs?: number;
  /** Called once, with a sentence that says what the run waits for. */
  onWait?: (sentence: string) => void;
}

/** The run gave up because another session held a lock for too long. The message is for an operator. */
export class LocksUnavailable extends Error {}

/**
 * Applies the migrations that a database lacks, each in its own transaction, and returns their names. A transaction that gets no lock
 * within a second is rolled back and repeated later. Concurrent runs wait for each other by an advisory lock of the session, so this opens a
 * connection of its own.
 * @throws Error whose cause, if any, is the database's error or {@link LocksUnavailable}.
 */
export async function migrateDatabase(databaseUrl: string, options: MigrateOptions = {}): Promise<string[]> {
  const { directory = MIGRATIONS, waitMaxMs = WAIT_MAX_MS, onWait = () => undefined } = options;
  const client = await connect(databaseUrl, { lock_timeout: LOCK_TIMEOUT_MS });
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  const patient = new PatientClient(client, waitMaxMs, onWait);
  const watch = new AbortController();
  const watched = patient.watch(databaseUrl, rows[0]?.pid, watch.signal).catch(() => undefined);
  try {
    return (await migrate({ client: patient.client }, directory)).map((migration) => migration.fileName);
  } catch (error) {
    // The library's error has the message of its cause, but not the cause.
    throw patient.failure === undefined ? error : new Error((error as Error).message, { cause: patient.failure });
  } finally {
    watch.abort();
    await watched;
    await client.end();
  }
}

type Statement = string | pg.QueryConfig;

/** Repeats a transaction that gets no lock, and bounds the library's wait for its advisory lock. */
class PatientClient {
  /** The client for the library. */
  readonly client: pg.Client;
  /** The first error that the library received. */
  failure: unknown;
  readonly #real: pg.Client;
  readonly #waitMaxMs: number;
  readonly #onWait: (sentence: string) => void;
  /** The statements of the open transaction; empty outside of one. */
  #sent: Statement[] = [];
  #waitsSince: number | null = null;
  #waitsFor: string | null = null;

  constructor(real: pg.Client, waitMaxMs: number, onWait: (sentence: string) => void) {
    this.#real = real;
    this.#waitMaxMs = waitMaxMs;
    this.#onWait = onWait;
    this.client = Object.create(real, { query: { value: (statement: Statement) => this.#query(statement) } });
  }

  /** Checks on a second connection, until the signal, which sessions hold the lock that this one waits for. */
  async watch(databaseUrl: string, pid: number | undefined, signal: AbortSignal): Promise<void> {
    const observer = await connect(databaseUrl);
    try {
      for await (const _ of setInterval(WATCH_EVERY_MS, undefined, { signal })) {
        const found = await observer.query<{ blocked: string }>(BLOCKED_BY, [pid]);
        const blocked = found.rows[0]?.blocked;
        if (blocked !== undefined) this.#noticeWait(blocked);
      }
    } finally {
      await observer.end();
    }
  }

  async #query(statement: Statement): Promise<pg.QueryResult> {
    try {
      if (statement === "ROLLBACK" || statement === "COMMIT") {
        this.#sent = [];
        return await this.#real.query(statement);
      }
      if (statement === "START TRANSACTION" || this.#sent.length > 0) this.#sent.push(statement);
      return await this.#untilLocked(this.#sent.length > 0 ? this.#sent : [statement]);
    } catch (error) {
      this.failure ??= error;
      throw error;
    }
  }

  /** Sends the last of these statements, and repeats all of them until every lock is granted. */
  async #untilLocked(statements: readonly Statement[]): Promise<pg.QueryResult> {
    for (let unsent = statements.slice(-1); ; unsent = [...statements]) {
      try {
        const results: pg.QueryResult[] = [];
        for (const statement of unsent) results.push(await this.#real.query(statement));
        const result = results.at(-1) as pg.QueryResult;
        // The library repeats this statement until it gets its advisory lock.
        if (result.rows?.[0]?.pg_try_advisory_lock === false) this.#wait("another migration");
        else this.#waitsSince = null;
        return result;
      } catch (error) {
        if (!isLockTimeout(error) && !isRetryable(error)) throw error;
        if (statements[0] === "START TRANSACTION") await this.#real.query("ROLLBACK");
        this.#wait(this.#waitsFor ?? "a lock of another session", error);
        await sleep(PAUSE_MS);
      }
    }
  }

  #noticeWait(waitsFor: string): void {
    if (this.#waitsFor === null) this.#onWait(`Waiting for ${waitsFor}.`);
    this.#waitsFor = waitsFor;
  }

  /** @throws LocksUnavailable when the wait has reached its limit. */
  #wait(waitsFor: string, cause?: unknown): void {
    this.#noticeWait(waitsFor);
    this.#waitsSince ??= performance.now();
    const waitedMs = performance.now() - this.#waitsSince;
    if (waitedMs < this.#waitMaxMs) return;
    throw new LocksUnavailable(
      `The migration gave up after ${Math.round(waitedMs / 1_000)} seconds of waiting for ${waitsFor}.`,
      { cause },
    );
  }
}

/** The table that a session waits for and the processes that hold it. No row when it does not wait. */
const BLOCKED_BY = `
  SELECT coalesce('table ' || l.relation::regclass::text, 'a lock')
         || ', which is held by process ' || string_agg(format('%s (%s)', a.pid, coalesce(nullif(a.application_name, ''), a.usename)), ', ') AS blocked
    FROM pg_locks AS l
    JOIN pg_stat_activity AS a ON a.pid = ANY (pg_blocking_pids(l.pid))
   WHERE l.pid = $1::int AND NOT l.granted
   GROUP BY l.relation`;

async function connect(databaseUrl: string, settings: pg.ClientConfig = {}): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: "migrate", ...settings });
  // A pending query also rejects when the connection is lost.
  client.on("error", () => undefined);
  await client.connect();
  return client;
}
