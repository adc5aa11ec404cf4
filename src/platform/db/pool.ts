import pg from "pg";
import type { Logger } from "pino";
import { writeOnceATurn } from "../batching/batcher.ts";
import { Client, secondClient } from "./client.ts";
import { type DatabaseClock, judgeTimes } from "./database-clock.ts";
import type { Transaction } from "./queryable.ts";
import { FIXED_PLANS, STATEMENT_TIMEOUT_MS } from "./requirements.ts";
import { prepareSession, type SessionOptions } from "./session.ts";

export type { Queryable, Transaction } from "./queryable.ts";

/** Maximum wait for a free or new connection, after which calls fail while Postgres is down. Milliseconds. */
const CONNECT_TIMEOUT_MS = 2_000;
/** Maximum wait for a connection in commands, which may have just started on a busy machine. Milliseconds. */
const PATIENT_CONNECT_TIMEOUT_MS = 10_000;
/**
 * Maximum wait for a reply: somewhat longer than the server's own timeout. After it, the connection counts as lost, as
 * when a host loses power without closing its connections. Milliseconds.
 */
const ANSWER_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 2_000;
/** Time after which TCP starts to probe an idle connection. Milliseconds. */
const KEEP_ALIVE_AFTER_MS = 10_000;

/**
 * Makes Postgres plan with indexes for the rest of a transaction, as it does for the service. Use it in administration
 * commands that read few rows of large tables: without statistics, Postgres may otherwise read a whole table once per
 * row.
 */
export async function usePlansOfService(tx: Transaction): Promise<void> {
  await tx.query(
    Object.entries(FIXED_PLANS)
      .map(([name, value]) => `SET LOCAL ${name} = ${value}`)
      .join("; "),
  );
}

// Reads these types as numbers: values of type numeric(12,2), and counts of type bigint, stay far below 2^53.
pg.types.setTypeParser(pg.types.builtins.NUMERIC, Number);
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

/**
 * Opens the pool of a process. If an idle connection is lost, logs this and replaces the connection. Each new
 * connection is prepared by `session.ts`.
 */
export function openPool(options: {
  databaseUrl: string;
  max: number;
  applicationName: string;
  /** The service gets fixed plans and short timeouts. Administration commands read whole tables. */
  use: "service" | "administration";
  /** Checks each new connection and the times that it reads. Null for commands, which may use any server. */
  deployment: { admit(client: pg.ClientBase): Promise<void>; clock: DatabaseClock } | null;
  /** Transactions are read-only unless they set READ WRITE. */
  readOnly?: boolean;
  /**
   * Maximum wait for a reply before the connection counts as lost. Milliseconds. By default, slightly longer than a
   * statement of the service may run, and unlimited for administration.
   */
  answerTimeoutMs?: number;
  /** Whether to log one warning for each server setting that can lose work. */
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
    // Sends only this parameter when a connection starts, because poolers refuse others. Statements set everything
    // else.
    application_name: options.applicationName,
    connectionTimeoutMillis: isService ? CONNECT_TIMEOUT_MS : PATIENT_CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
    // Sends statements without waiting for the results of earlier statements. The server still runs them in order.
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
