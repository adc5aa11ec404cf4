import pg from "pg";
import type { Logger } from "pino";
import { writeOnceATurn } from "../batching/batcher.ts";
import { Client, secondClient } from "./client.ts";
import { type DatabaseClock, judgeTimes } from "./database-clock.ts";
import type { Transaction } from "./queryable.ts";
import { FIXED_PLANS, STATEMENT_TIMEOUT_MS } from "./requirements.ts";
import { prepareSession, type SessionOptions } from "./session.ts";

export type { Queryable, Transaction } from "./queryable.ts";

/** Longest wait for a free or new connection, so that calls fail while the database is unreachable. Milliseconds. */
const CONNECT_TIMEOUT_MS = 2_000;
/** The longest wait of administration, which may run in a process that has just started on a busy machine. */
const PATIENT_CONNECT_TIMEOUT_MS = 10_000;
/**
 * If no reply arrives some time after the server's own timeout, the connection counts as lost: a host that loses power
 * does not close it.
 */
const ANSWER_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 2_000;
/** Time after which TCP starts to probe an idle connection. Milliseconds. */
const KEEP_ALIVE_AFTER_MS = 10_000;

/**
 * Makes Postgres plan the rest of a transaction over indexes, as for the service. Use it in administration that reads
 * few rows of large tables: otherwise, a table without statistics may be read as a whole for each row.
 */
export async function usePlansOfService(tx: Transaction): Promise<void> {
  await tx.query(
    Object.entries(FIXED_PLANS)
      .map(([name, value]) => `SET LOCAL ${name} = ${value}`)
      .join("; "),
  );
}

// numeric(12,2) and bigint counts stay far below 2^53.
pg.types.setTypeParser(pg.types.builtins.NUMERIC, Number);
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

/**
 * Opens the pool of a process. Logs and replaces a connection that is lost while idle. Each new connection is prepared
 * as `session.ts` says.
 */
export function openPool(options: {
  databaseUrl: string;
  max: number;
  applicationName: string;
  /** The service gets fixed plans and short timeouts. Administration reads whole tables. */
  use: "service" | "administration";
  /** Checks each new connection, and judges the times that it reads. Null for commands, which may use any server. */
  deployment: { admit(client: pg.ClientBase): Promise<void>; clock: DatabaseClock } | null;
  /** Transactions are read-only unless they set READ WRITE. */
  readOnly?: boolean;
  /**
   * How long to wait for a reply before the connection counts as lost. Milliseconds; by default, the service waits
   * longer than a statement may run, and administration without end.
   */
  answerTimeoutMs?: number;
  /** Whether to log what could lose work on the server that a connection reaches, once each. */
  tellsRisks?: boolean;
  log: Logger;
}): pg.Pool {
  const { use, deployment, databaseUrl: connectionString, readOnly: isReadOnly = false } = options;
  const isService = use === "service";
  const answerTimeoutMs = options.answerTimeoutMs ?? (isService ? ANSWER_TIMEOUT_MS : null);
  const told = new Set<string>();
  let openAnother: SessionOptions["openAnother"] = () => secondClient(connectionString);
  const pool = new pg.Pool({
    Client,
    connectionString,
    max: options.max,
    // A pooler refuses other parameters when a connection starts, so statements set all settings.
    application_name: options.applicationName,
    connectionTimeoutMillis: isService ? CONNECT_TIMEOUT_MS : PATIENT_CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
    // Sends statements without waiting for the results of earlier ones. The server still runs them in order.
    pipeline: isService,
    ...(answerTimeoutMs !== null && { query_timeout: answerTimeoutMs }),
    async onConnect(client: pg.ClientBase) {
      const risks = await prepareSession(client, { use, isReadOnly, openAnother });
      for (const { code, message } of options.tellsRisks ? risks : []) {
        if (!told.has(code)) options.log.warn({ risk: code }, message);
        told.add(code);
      }
      openAnother = null;
      await deployment?.admit(client);
      if (deployment !== null) judgeTimes(client, deployment.clock);
    },
  });
  if (deployment !== null) judgeTimes(pool, deployment.clock);
  pool.on("error", (error) => options.log.warn({ err: error }, "an idle database connection was lost"));
  if (isService) pool.on("connect", (client) => writeOnceATurn(client.connection.stream));
  return pool;
}
