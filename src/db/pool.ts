import pg from "pg";
import type { Logger } from "pino";
import { writeOnceATurn } from "../batching/batcher.ts";

/** Runs statements: the pool, or one connection inside a transaction. */
export interface Queryable {
  query<Row extends pg.QueryResultRow>(
    query: (pg.QueryConfig & { rowMode?: "array" }) | string,
    values?: unknown[],
  ): Promise<pg.QueryResult<Row>>;
}

/** One connection with an open transaction. */
export type Transaction = pg.PoolClient;

/** Longest wait for a free or new connection, so that calls fail while the database is unreachable. Milliseconds. */
const CONNECT_TIMEOUT_MS = 2_000;
/** The same for administration, which may run in a process that has just started on a busy machine. */
const PATIENT_CONNECT_TIMEOUT_MS = 10_000;
/** Longest a partner-facing statement may run. Lock waits have their own, shorter limit. */
const STATEMENT_TIMEOUT_MS = 10_000;
/** If no reply arrives some time after the server's own timeout, the connection counts as lost: a host that loses power does not close it. */
const ANSWER_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 2_000;
/** How long the server keeps an idle transaction and its locks, for instance of a process whose host lost power. */
const IDLE_IN_TRANSACTION_MS = 10_000;
/** When TCP starts to probe an idle connection. */
const KEEP_ALIVE_AFTER_MS = 10_000;

/** Longest wait for a lock, unless `waitForLocks` sets another. Most transactions hold locks for a few milliseconds. Milliseconds. */
const LOCK_TIMEOUT_MS = 250;

/**
 * Planner settings for the service's statements, which look up limited numbers of keys by index. A generic plan is made once per connection,
 * which saves a millisecond per redemption, and stays until the next ANALYZE. So a plan for empty tables must stay fast while they grow. The
 * settings allow only nested loops over indexes. Three forms in the statements keep such a loop from reading a whole index, as
 * `test/db/plans.test.ts` proves:
 *
 * - `t.id = ANY (ARRAY[w.id])` uses the index like `t.id = w.id`, but a join cannot start with `t`.
 * - `(r.state = 'Live') IS NOT FALSE` does not imply the predicate of a partial index.
 * - `OFFSET 0` keeps Postgres from merging a subquery that searches by key into the outer query.
 *
 * JIT is off because these settings raise costs above its threshold, so that Postgres would compile a plan at every call.
 */
const FIXED_PLANS = [
  "plan_cache_mode=force_generic_plan",
  "enable_seqscan=off",
  "enable_hashjoin=off",
  "enable_mergejoin=off",
  "enable_material=off",
  "jit=off",
];

/** Set because the database may have another default: transactions rely on each statement seeing all that was committed before it. */
const READ_COMMITTED = ["default_transaction_isolation=read\\ committed"];

/**
 * Plans the rest of a transaction over indexes, as the service does. For administration that reads few rows of large tables: without the
 * settings, a table without statistics may be read as a whole for each row.
 */
export async function usePlansOfService(tx: Transaction): Promise<void> {
  await tx.query(FIXED_PLANS.map((setting) => `SET LOCAL ${setting}`).join("; "));
}

const READ_ONLY = ["default_transaction_read_only=on"];

// numeric(12,2) and bigint counts stay far below 2^53.
pg.types.setTypeParser(pg.types.builtins.NUMERIC, Number);
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

/** Removes the `options` from a connection string and returns both, because `pg` would use them instead of the pool's. */
function takeOptions(databaseUrl: string): [string, ...string[]] {
  const url = new URL(databaseUrl);
  const own = url.searchParams.getAll("options");
  if (own.length === 0) return [databaseUrl];
  url.searchParams.delete("options");
  return [url.href, ...own];
}

/** Opens the pool of a process. Logs and replaces a connection that is lost while idle. */
export function openPool(options: {
  databaseUrl: string;
  max: number;
  applicationName: string;
  /** The deployment of an API or worker process. It gets fixed plans and short timeouts. Null for administration, which reads whole tables. */
  deployment: { admit(client: pg.ClientBase): Promise<void> } | null;
  /** Transactions are read-only unless they set READ WRITE. */
  readOnly?: boolean;
  /** How long to wait for a reply before the connection counts as lost. Milliseconds; by default longer than a statement may run. */
  answerTimeoutMs?: number;
  log: Logger;
}): pg.Pool {
  const { deployment } = options;
  const [connectionString, ...ownOptions] = takeOptions(options.databaseUrl);
  const pool = new pg.Pool({
    connectionString,
    max: options.max,
    application_name: options.applicationName,
    connectionTimeoutMillis: deployment ? CONNECT_TIMEOUT_MS : PATIENT_CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
    // Sends statements without waiting for the results of earlier ones. The server still runs them in order.
    pipeline: deployment !== null,
    ...(deployment && {
      onConnect: (client: pg.ClientBase) => deployment.admit(client),
      statement_timeout: STATEMENT_TIMEOUT_MS,
      query_timeout: options.answerTimeoutMs ?? ANSWER_TIMEOUT_MS,
      idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
      lock_timeout: LOCK_TIMEOUT_MS,
    }),
    options: [...READ_COMMITTED, ...(deployment ? FIXED_PLANS : []), ...(options.readOnly ? READ_ONLY : [])]
      .map((setting) => `-c ${setting}`)
      .concat(ownOptions)
      .join(" "),
  });
  pool.on("error", (error) => options.log.warn({ err: error }, "an idle database connection was lost"));
  // When a checked-out connection is lost, pg rejects its statement and also emits an event, which would end the process without a listener.
  pool.on("connect", (client) => client.on("error", () => undefined));
  if (deployment) pool.on("connect", (client) => writeOnceATurn(client.connection.stream));
  return pool;
}
