import pg from "pg";
import { type Checked, problemsOf, runCheck, type UnmetCheck } from "../checks.ts";
import { connectClient, secondClient } from "./client.ts";
import { arrayOf, boolean, integer, orNull, text } from "./columns.ts";
import type { Queryable } from "./queryable.ts";
import {
  checkDatabase,
  DURABLE,
  type FunctionName,
  POOLING,
  type Pooling,
  settingsFor,
  type Use,
} from "./requirements.ts";
import { UnusableDatabase } from "./schema.ts";
import { columnsOf, Statements } from "./statements.ts";

/** The functions that run with the owner's rights. */
export const DEFINERS: readonly string[] = [
  "add_erasure_key",
  "add_mark",
  "advance_sandbox",
  "count_codes_read",
  "erase_events",
  "erase_reference",
  "erase_user",
  "erased_form",
  "find_erased_references",
  "find_erased_users",
];

export const sql = new Statements(new URL("./session.sql", import.meta.url));

const setSession = sql.execute("set_session", { name: arrayOf(text), value: arrayOf(text), kept: arrayOf(text) });
const pinSchema = sql.execute("pin_schema", { findsElsewhere: boolean });
const readSession = sql.requiredRow(
  "read_session",
  {
    values: arrayOf(orNull(text)),
    isStandby: boolean,
    version: integer,
    encoding: text,
    database: text,
    role: text,
    schema: orNull(text),
    hasTables: boolean,
    hasForeignTable: boolean,
    schemas: arrayOf(text),
    strayFunctions: arrayOf(text),
    filteredTables: arrayOf(text),
    mayEmitMessages: boolean,
  },
  { names: arrayOf(text), definers: arrayOf(text) },
);
const probePosition = sql.requiredValue("probe_position", { position: text });
const probeIdentity = sql.requiredValue("probe_identity", { identifier: text });

/**
 * Removes the time limit of statements, and what an earlier client of a pooler may have left, such as prepared
 * statements, whose names Postgres would refuse to use again.
 */
const FORGET = "SET statement_timeout = 0; RESET search_path; RESET default_transaction_read_only; DEALLOCATE ALL";

/**
 * Maximum number of rounds for finding out whether two clients of a pooler share server connections. Other clients of
 * the pooler may hide this in a single round.
 */
const ROUNDS = 5;

/** The database or the session breaks a requirement. The message names the requirement and the wanted value. */
export class UnmetRequirement extends UnusableDatabase {
  constructor(problems: readonly UnmetCheck[]) {
    super("unavailable", problems.map(({ message }) => message).join(" "));
    this.name = "UnmetRequirement";
  }
}

export interface SessionOptions {
  use: Use;
  /** Transactions are read-only unless they set READ WRITE. */
  isReadOnly?: boolean;
  /** Makes another client of the same address. Null if there is known to be no pooler, or one that keeps sessions. */
  openAnother: (() => pg.Client) | null;
}

/**
 * Applies the settings that the code requires to a new connection, and checks the result. Returns the settings that
 * risk the loss of work.
 * @throws UnmetRequirement
 */
export async function prepareSession(client: pg.ClientBase, options: SessionOptions): Promise<UnmetCheck[]> {
  const problems = problemsOf(await inspectSession(client, options));
  const refused = problems.filter(({ effect }) => effect === "refused");
  if (refused.length > 0) throw new UnmetRequirement(refused);
  if (options.isReadOnly) await client.query("SET default_transaction_read_only = on");
  return problems;
}

/** Like {@link prepareSession}, but returns all checks instead of throwing. */
async function inspectSession(client: pg.ClientBase, { use, openAnother }: SessionOptions): Promise<Checked[]> {
  const pooling = openAnother === null ? "none" : await findPooling(client, openAnother);
  const pooled = runCheck(POOLING, [{ pooling }]);
  if (pooled.problems.length > 0) return [pooled];
  const settings = settingsFor(use);
  const names = [...settings.map(({ name }) => name), ...DURABLE];
  const own = settings.filter(({ isOnlyCompared }) => !isOnlyCompared);
  const kept = own.flatMap(({ name, orKept }) => (orKept === undefined ? [] : [`${name}=${orKept}`]));
  const refused = new Map<FunctionName, string>();
  const probe = (name: FunctionName, ask: (db: Queryable) => Promise<unknown>) => () =>
    ask(client).catch((error: unknown) => {
      if (!(error instanceof pg.DatabaseError)) throw error;
      refused.set(name, error.message);
    });
  const steps = [
    () => client.query(FORGET),
    () => setSession(client, { ...columnsOf(own, "name", "value"), kept }),
    () => pinSchema(client, use !== "migration"),
    probe("pg_current_wal_lsn", probePosition),
    probe("pg_control_system", probeIdentity),
  ];
  const found = await inOrder(client, steps, () => readSession(client, { names, definers: DEFINERS }));
  if (!found.mayEmitMessages) refused.set("pg_logical_emit_message", "permission denied");
  const known = names.flatMap((name, index) => {
    const value = found.values[index] ?? null;
    return value === null ? [] : [[name, value] as const];
  });
  return checkDatabase({ ...found, use, pooling, refused, settings: new Map(known) });
}

/** Runs statements in order and returns the result of the last. Takes one round trip if the connection pipelines. */
async function inOrder<T>(
  client: pg.ClientBase,
  steps: readonly (() => Promise<unknown>)[],
  last: () => Promise<T>,
): Promise<T> {
  if ((client as { pipeline?: boolean }).pipeline) {
    const sent = steps.map((step) => step());
    const [result] = await Promise.all([last(), ...sent]);
    return result;
  }
  for (const step of steps) await step();
  return last();
}

/**
 * Detects a pooler: the process id that it tells its clients differs from the server's. If the pooler assigns server
 * connections per transaction, the next client gets the connection that this client has just used.
 */
async function findPooling(client: pg.ClientBase, openAnother: () => pg.Client): Promise<Pooling> {
  const pid = await readServerProcess(client);
  if ((client as { processID?: number }).processID === pid) return "none";
  const second = openAnother();
  try {
    await second.connect();
    for (let round = 0; round < ROUNDS; round++) {
      if ((await readServerProcess(client)) !== pid || (await readServerProcess(second)) === pid) return "transaction";
    }
    return "session";
  } catch (error) {
    // The pooler gave no second connection while this client waited, so it keeps its only connection for this client.
    if (/timeout/i.test((error as Error).message)) return "session";
    throw error;
  } finally {
    void second.end().catch(() => undefined);
  }
}

/** Reads the server's process id, unprepared, because a pooler may have prepared the statement for another client. */
async function readServerProcess(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  return rows[0]?.pid ?? 0;
}

/** Connects like the service, and returns the checks with their results. */
export async function inspectDatabase(databaseUrl: string): Promise<Checked[]> {
  const client = await connectClient(databaseUrl, "voucherctl");
  const openAnother = () => secondClient(databaseUrl);
  return inspectSession(client, { use: "service", openAnother }).finally(() => client.end());
}
