import { setInterval, setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { loadMigrationFiles, migrate } from "postgres-migrations";
import { connectClient, secondClient } from "./client.ts";
import { MIGRATION_LOCK_TIMEOUT_MS } from "./requirements.ts";
import { takeDefaultRights } from "./rights.ts";
import { MIGRATIONS } from "./schema.ts";
import { prepareSession } from "./session.ts";
import { isLockTimeout, isRetryable } from "./transaction.ts";

/** Pause between two attempts, in which statements that waited for the migration can run. Milliseconds. */
const PAUSE_MS = 2_000;
/** Maximum wait for locks in one run. Milliseconds. */
const WAIT_MAX_MS = 600_000;
/** Interval between checks of which sessions block the run. Shorter than one wait for a lock. Milliseconds. */
const WATCH_EVERY_MS = 40;
/** Key of the advisory lock of postgres-migrations. The library does not wait for a lock that its session has. */
const LIBRARY_LOCK = "-8525285245963000605";

interface MigrateOptions {
  directory?: string;
  waitMaxMs?: number;
  /** Called at most once, with a sentence about what the run waits for. */
  onWait?: (sentence: string) => void;
  /** Called with the roles, or PUBLIC, from which the run has taken default rights. */
  onRightsTaken?: (grantees: readonly string[]) => void;
}

/** The run gave up because another session held a lock for too long. The message is for an operator. */
export class LocksUnavailable extends Error {}

/**
 * The database has other versions of the migrations. The message has the problem and, in its second line, the remedy.
 */
export class MigrationsChanged extends Error {
  constructor(options: ErrorOptions) {
    super(
      "An unreleased version of the service made this database: its migrations have changed since.\nDelete the " +
        "folder .data, or create a new database.",
      options,
    );
  }
}

/**
 * Applies the migrations that a database lacks, each in its own transaction, and returns their names. If a migration
 * does not get a lock at once, rolls it back and tries again later. Concurrent runs wait for each other.
 * @throws LocksUnavailable, MigrationsChanged, or an Error whose cause, if any, is the database's error.
 */
export async function migrateDatabase(databaseUrl: string, options: MigrateOptions = {}): Promise<string[]> {
  const { directory = MIGRATIONS, waitMaxMs = WAIT_MAX_MS, onWait = () => undefined, onRightsTaken } = options;
  const client = await connect(databaseUrl);
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  let waitsFor: string | null = null;
  const notice = (blocker: string) => {
    if (waitsFor === null) onWait(`Waiting for ${blocker}.`);
    waitsFor = blocker;
  };
  const ended = new AbortController();
  const watched = watchLocks(databaseUrl, rows[0]?.pid ?? 0, ended.signal, notice).catch(() => undefined);
  let waitsSince: number | null = null;
  const retryUntilLocked = async (run: () => Promise<unknown>) => {
    for (;;) {
      try {
        return await run();
      } catch (error) {
        const { cause = error } = error as Error;
        if (!isLockTimeout(cause) && !isRetryable(cause)) throw error;
        waitsSince ??= performance.now() - MIGRATION_LOCK_TIMEOUT_MS;
        const waitedMs = performance.now() - waitsSince;
        if (waitedMs >= waitMaxMs) {
          const seconds = Math.round(waitedMs / 1_000);
          const blocker = waitsFor ?? "a lock of another session";
          throw new LocksUnavailable(`The migration gave up after ${seconds} seconds of waiting for ${blocker}.`);
        }
        await sleep(PAUSE_MS);
      }
    }
  };
  try {
    // Takes the library's lock first, because the library would wait for it without a limit.
    await retryUntilLocked(() => client.query("SELECT pg_advisory_lock($1::bigint)", [LIBRARY_LOCK]));
    const files = await loadMigrationFiles(directory);
    const before = await selectAppliedIds(client, files);
    await retryUntilLocked(async () => {
      await dropUnfinishedIndexes(client);
      await runLibrary(client, directory);
    });
    // Takes default rights away after each run, because objects of later migrations get them too. A migration could
    // take them away only once.
    await retryUntilLocked(async () => {
      const grantees = await takeDefaultRights(client, directory);
      if (grantees.length > 0) onRightsTaken?.(grantees);
    });
    return files.filter(({ id }) => !before.has(id)).map(({ fileName }) => fileName);
  } finally {
    ended.abort();
    await watched;
    await client.end();
  }
}

/** Drops the remains of a failed CREATE INDEX CONCURRENTLY, which keep the index's name in use. */
async function dropUnfinishedIndexes(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(UNFINISHED_INDEXES);
  for (const { name } of rows) await client.query(`DROP INDEX ${name}`);
}

/**
 * Runs the library. The library's error contains only the message of the database's error, so this adds the database's
 * error as its cause.
 */
async function runLibrary(client: pg.Client, directory: string): Promise<void> {
  let cause: unknown;
  const query = (statement: string | pg.QueryConfig) =>
    client.query(statement).catch((error: unknown) => {
      cause ??= error;
      throw error;
    });
  await migrate({ client: Object.create(client, { query: { value: query } }) }, directory).catch((error: Error) => {
    if (error.message.includes("Hashes don't match")) throw new MigrationsChanged({ cause: error });
    throw cause === undefined ? error : new Error(error.message, { cause });
  });
}

/**
 * The migrations that the database has. Creates the library's table if it is missing, because the library would
 * otherwise use a table with that name in any schema.
 */
async function selectAppliedIds(
  client: pg.Client,
  files: readonly { id: number; sql: string }[],
): Promise<Set<number>> {
  const { rows } = await client.query("SELECT to_regclass('migrations') IS NOT NULL AS found");
  if (!rows[0].found) await client.query(files.find(({ id }) => id === 0)?.sql ?? "");
  const applied = await client.query<{ id: number }>("SELECT id FROM migrations");
  return new Set(applied.rows.map(({ id }) => id));
}

/** Reports the sessions that block the session `pid`, on a separate connection, until `signal` aborts. */
async function watchLocks(
  databaseUrl: string,
  pid: number,
  signal: AbortSignal,
  notice: (blocker: string) => void,
): Promise<void> {
  const observer = await connect(databaseUrl);
  try {
    for await (const _ of setInterval(WATCH_EVERY_MS, undefined, { signal })) {
      const { rows } = await observer.query<{ blocker: string }>(BLOCKER, [pid]);
      if (rows[0] !== undefined) notice(rows[0].blocker);
    }
  } finally {
    await observer.end();
  }
}

/** The indexes in the tables' schema that a migration began and did not finish. */
const UNFINISHED_INDEXES = `
  SELECT i.indexrelid::regclass::text AS name FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
    JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE NOT i.indisvalid AND n.nspname = current_schema()`;

/**
 * The lock for which a session waits, and the other processes that hold it. No row if the session does not wait, or
 * waits only for the end of this query, as CREATE INDEX CONCURRENTLY waits for every transaction.
 */
const BLOCKER = `
  SELECT CASE WHEN l.locktype = 'advisory' THEN 'another migration' ELSE
           coalesce('table ' || l.relation::regclass::text, 'a lock') || ', which is held by process '
             || string_agg(format('%s (%s)', a.pid, coalesce(nullif(a.application_name, ''), a.usename)), ', ')
         END AS blocker
    FROM pg_locks AS l
    JOIN pg_stat_activity AS a ON a.pid = ANY (pg_blocking_pids(l.pid)) AND a.pid <> pg_backend_pid()
   WHERE l.pid = $1::int AND NOT l.granted
   GROUP BY l.locktype, l.relation`;

async function connect(databaseUrl: string): Promise<pg.Client> {
  const client = await connectClient(databaseUrl, "migrate");
  try {
    await prepareSession(client, { use: "migration", openAnother: () => secondClient(databaseUrl) });
    return client;
  } catch (error) {
    await client.end();
    throw error;
  }
}
