import pg from "pg";
import type { Logger } from "pino";
import { writeOnceATurn } from "../batching/write-once-a-turn.ts";

/** Something that runs statements: the pool, or one connection inside a transaction. */
export interface Queryable {
  query<Row extends pg.QueryResultRow>(
    query: pg.QueryConfig | string,
    values?: unknown[],
  ): Promise<pg.QueryResult<Row>>;
}

/** One connection with an open transaction. */
export type Transaction = pg.PoolClient;

/** Time to wait for a free or new connection, so that an unreachable database fails calls instead of holding them. */
const CONNECT_TIMEOUT_MS = 2_000;
/** The same for administration, which may start a cold process on a busy machine. */
const PATIENT_CONNECT_TIMEOUT_MS = 10_000;
/** Longest a partner-facing statement may run. Row waits have their own, shorter limit. */
const STATEMENT_TIMEOUT_MS = 10_000;
/**
 * When a statement counts as lost, and its connection with it. The server gives up before; who hears nothing even then talks to nobody: a host
 * that lost its power closes no connection, and nor does a firewall that forgot one.
 */
const ANSWER_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 2_000;
/** How long the server keeps an open transaction, and its locks, for a process that asks nothing in it: one that is gone without a word. */
const IDLE_IN_TRANSACTION_MS = 10_000;
/** When an idle connection begins to ask whether its other end is still there. */
const KEEP_ALIVE_AFTER_MS = 10_000;

/**
 * Longest a partner-facing statement waits for a lock, unless its transaction says that it may wait. Such a lock is another
 * transaction's few milliseconds, or something is stuck.
 */
const LOCK_TIMEOUT_MS = 250;

/**
 * Plans of the service's statements, fixed: every one of them is written to go through indexes for a few hundred keys at most.
 * Generic plans are made once per connection, which saves a millisecond in each burn; and a plan that was made while a table was
 * empty must still be the right one when a million vouchers have been issued since. So the other ways of reading and joining are
 * off, and the statements leave no second way through an index:
 *
 * - A table that is searched for each row of another is joined as `t.id = ANY (ARRAY[w.id])`. An index answers that like `t.id = w.id`,
 *   but no plan can begin with `t` and read its whole index in order, which looks free as long as `t` is empty.
 * - A partial index whose predicate the condition implies could be read whole, too. `(r.state = 'Live') IS NOT FALSE` implies none;
 *   `OFFSET 0` keeps a search by key apart from the join around it.
 */
const FIXED_PLANS = [
  "plan_cache_mode=force_generic_plan",
  "enable_seqscan=off",
  "enable_hashjoin=off",
  "enable_mergejoin=off",
  "enable_material=off",
];

const READ_ONLY = ["default_transaction_read_only=on"];

// Money and counts: numeric(12,2) and bigint counts stay far below 2^53, and JSON has numbers only.
pg.types.setTypeParser(pg.types.builtins.NUMERIC, Number);
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

/** A new connection led to a standby, or to what was the primary: its answers may be old, and it takes no writes. */
export class ReadOnlyServer extends Error {
  constructor() {
    super("the database server only reads");
    this.name = "ReadOnlyServer";
  }
}

/** @throws ReadOnlyServer */
async function demandPrimary(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ transaction_read_only: string }>("SHOW transaction_read_only");
  if (rows[0]?.transaction_read_only !== "off") throw new ReadOnlyServer();
}

/** Opens the pool of a process. A connection that dies while idle is logged and replaced. */
export function openPool(options: {
  databaseUrl: string;
  max: number;
  applicationName: string;
  /** Runs partner-facing statements only: fixed plans, and little patience. Administration reads whole tables and may wait. */
  partnerFacing: boolean;
  /** Writes only in transactions that say so. */
  readOnly?: boolean;
  log: Logger;
}): pg.Pool {
  const pool = new pg.Pool({
    connectionString: options.databaseUrl,
    max: options.max,
    application_name: options.applicationName,
    connectionTimeoutMillis: options.partnerFacing ? CONNECT_TIMEOUT_MS : PATIENT_CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
    // Statements are sent without waiting for the answers to those before; the server still runs them one after another.
    pipeline: options.partnerFacing,
    ...(options.partnerFacing && {
      onConnect: demandPrimary,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
      idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
      lock_timeout: LOCK_TIMEOUT_MS,
    }),
    options: [...(options.partnerFacing ? FIXED_PLANS : []), ...(options.readOnly ? READ_ONLY : [])]
      .map((setting) => `-c ${setting}`)
      .join(" "),
  });
  pool.on("error", (error) => options.log.warn({ err: error }, "an idle database connection was lost"));
  // pg tells the loss of a connection that is lent out twice: to its statement, and as an event that ends the process unheard.
  pool.on("connect", (client) => client.on("error", () => undefined));
  if (options.partnerFacing) pool.on("connect", (client) => writeOnceATurn(client.connection.stream));
  return pool;
}
