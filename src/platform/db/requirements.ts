import pg from "pg";

// Everything that the code relies on in Postgres: in each session, and in the server and its database. `session.ts`
// sets and compares it on each new connection, and `voucherctl db check` prints it.

/** What a connection is for. */
export type Use = "service" | "administration" | "migration";

/** Longest duration of a partner-facing statement. Lock waits have their own, shorter limit. Milliseconds. */
export const STATEMENT_TIMEOUT_MS = 10_000;
/**
 * Longest wait of a migration for one lock. Later statements on the table wait as long, and statements of the service
 * give up after 250 ms. Milliseconds.
 */
export const MIGRATION_LOCK_TIMEOUT_MS = 100;

/** A setting of a session. */
interface Setting {
  name: string;
  /** What relies on the setting. */
  why: string;
  /** What the connection sets, as Postgres shows it: for every use, or for these. */
  value: string | Partial<Record<Use, string>>;
  /** Another value that also meets the requirement, and is kept. */
  orKept?: string;
  /** Set if the connection does not set it: only a superuser may, or an operator uses it to stop all writes. */
  isOnlyCompared?: true;
}

/**
 * Planner settings for the service's statements, which look up limited numbers of keys by index. A generic plan is made
 * once per connection, which saves a millisecond per redemption, and stays until the next ANALYZE. So a plan for empty
 * tables must stay fast while they grow. The settings allow only nested loops over indexes. Three forms in the
 * statements keep such a loop from reading a whole index, as `test/platform/db/plans.test.ts` proves:
 *
 * - `t.id = ANY (ARRAY[w.id])` uses the index like `t.id = w.id`, but a join cannot start with `t`.
 * - `(r.state = 'Live') IS NOT FALSE` does not imply the predicate of a partial index.
 * - `OFFSET 0` keeps Postgres from merging a subquery that searches by key into the outer query.
 *
 * JIT is off because these settings raise costs above its threshold: each call would compile its plan.
 */
export const FIXED_PLANS: Readonly<Record<string, string>> = {
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_material: "off",
  enable_nestloop: "on",
  enable_indexscan: "on",
  enable_indexonlyscan: "on",
  enable_bitmapscan: "on",
  jit: "off",
};

/** Every setting that the code relies on, except `search_path`: `session.ts` sets it to the schema of the tables. */
export const SETTINGS: readonly Setting[] = [
  { name: "client_encoding", value: "UTF8", why: "Texts are sent and read as UTF-8." },
  { name: "DateStyle", value: "ISO, MDY", why: "Times are read in the ISO form." },
  { name: "IntervalStyle", value: "postgres", why: "Intervals have the same text everywhere." },
  { name: "TimeZone", value: "UTC", why: "Days have 24 hours, and texts of times are compared between sessions." },
  { name: "standard_conforming_strings", value: "on", why: "A backslash in a text is a backslash." },
  { name: "bytea_output", value: "hex", why: "Bytes are read in this form." },
  { name: "extra_float_digits", value: "1", why: "Numbers are read in full." },
  { name: "array_nulls", value: "on", why: "NULL in a list of parameters is no text." },
  { name: "default_transaction_isolation", value: "read committed", why: "A statement sees all commits before it." },
  { name: "default_transaction_deferrable", value: "off", why: "No transaction waits for a snapshot." },
  {
    name: "default_transaction_read_only",
    value: "off",
    isOnlyCompared: true,
    why: "The service writes. Operators and providers turn it on to stop that.",
  },
  { name: "session_replication_role", value: "origin", isOnlyCompared: true, why: "Triggers and keys guard the data." },
  { name: "synchronous_commit", value: "on", orKept: "remote_apply", why: "What is acknowledged is on disk." },
  { name: "client_min_messages", value: "notice", why: "A warning at COMMIT means that no standby confirmed it." },
  { name: "exit_on_error", value: "off", why: "An error ends a statement, not the connection." },
  {
    name: "statement_timeout",
    value: { service: `${STATEMENT_TIMEOUT_MS / 1_000}s`, administration: "0", migration: "0" },
    why: "No call of a partner runs longer.",
  },
  {
    // Most transactions hold locks for a few milliseconds. `waitForLocks` sets another limit for its transaction.
    name: "lock_timeout",
    value: { service: "250ms", administration: "0", migration: `${MIGRATION_LOCK_TIMEOUT_MS}ms` },
    why: "No call waits longer for a row.",
  },
  {
    name: "idle_in_transaction_session_timeout",
    value: { service: "10s", administration: "1min", migration: "0" },
    why: "The locks of a process whose host lost power end.",
  },
  { name: "transaction_timeout", value: "0", why: "Long commands run to their end." },
  { name: "idle_session_timeout", value: "0", why: "Connections wait for calls." },
  { name: "check_function_bodies", value: { migration: "off" }, why: "A later migration may mend a function." },
  ...Object.entries(FIXED_PLANS).map(
    ([name, value]): Setting => ({ name, value: { service: value }, why: "Plans look up keys by index." }),
  ),
];

/** The settings of one use, with the value of each. */
export function settingsFor(use: Use): (Setting & { value: string })[] {
  return SETTINGS.flatMap((setting) => {
    const value = typeof setting.value === "string" ? setting.value : setting.value[use];
    return value === undefined ? [] : [{ ...setting, value }];
  });
}

/** Functions that a server without superusers, or one that only speaks the protocol of Postgres, may refuse. */
const FUNCTIONS = {
  pg_current_wal_lsn: "A former primary is recognized by the timeline of its write-ahead log.",
  pg_control_system: "A copy of the database is recognized by the server's identifier.",
  pg_logical_emit_message: "A COMMIT that only confirms what was read waits for the standbys.",
} as const;
export type FunctionName = keyof typeof FUNCTIONS;

const VERSION_MIN = 15;

/** Whether a pooler is between client and server, and what it assigns a server connection to. */
export type Pooling = "none" | "session" | "transaction";

/** What a connection has found. */
export interface Facts {
  database: string;
  role: string;
  /** As `server_version_num`. */
  version: number;
  encoding: string;
  /** The schema that the session uses. Null when no schema of search_path exists. */
  schema: string | null;
  /** Whether that schema has the service's tables. */
  hasTables: boolean;
  /** Whether another program keeps its migrations there, under the name of the service's table. */
  hasForeignTable: boolean;
  /** The schemas of this database that have the service's tables. */
  schemas: readonly string[];
  /** Functions with the rights of the owner that look for tables in another schema. */
  strayFunctions: readonly string[];
  /** Settings by name. A setting that the server does not know has no entry. */
  settings: ReadonlyMap<string, { value: string; source: string }>;
  /** The server's message about each function that it refuses. */
  refused: ReadonlyMap<FunctionName, string>;
}

/** One row of the list, and whether this server and session meet it. */
export interface Finding {
  name: string;
  why: string;
  wanted: string;
  actual: string;
  /** The remedy, as a sentence. Null if the requirement is met. */
  mend: string | null;
}

/** Compares what the code relies on with what a connection has found. */
export function compare(facts: Facts, use: Use): Finding[] {
  return [
    findVersion(facts),
    findEncoding(facts),
    findSchema(facts, use),
    ...(use === "migration" ? [] : [findDefiners(facts)]),
    ...Object.keys(FUNCTIONS).map((name) => findFunction(facts, name as FunctionName)),
    ...settingsFor(use).flatMap((setting) => findSetting(facts, setting)),
  ];
}

/** What is wrong and what to do about it, for an operator. */
export function describeFinding({ name, why, wanted, actual, mend }: Finding): string {
  return [`${name} is ${actual}. Needed: ${wanted}.`, why, ...(mend === null ? [] : [mend])].join(" ");
}

function findVersion({ version }: Facts): Finding {
  const major = Math.floor(version / 10_000);
  return {
    name: "server version",
    why: "Statements and migrations use what it has.",
    wanted: `${VERSION_MIN} or newer`,
    actual: String(major),
    mend: major >= VERSION_MIN ? null : "Upgrade the server.",
  };
}

function findEncoding({ encoding, database }: Facts): Finding {
  const command = `CREATE DATABASE ${quote(`${database}_utf8`)} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C';`;
  return {
    name: "server_encoding",
    why: "References and names may have every character of Unicode.",
    wanted: "UTF8",
    actual: encoding,
    mend: encoding === "UTF8" ? null : `Make another database, and name it in DATABASE_URL: ${command}`,
  };
}

function findSchema(facts: Facts, use: Use): Finding {
  const { schema, hasTables, hasForeignTable, schemas } = facts;
  return {
    name: "search_path",
    why: "All tables and functions are in one schema.",
    wanted: use === "migration" ? "a schema for the tables" : "the schema of the tables",
    actual: `${schema ?? "no schema that exists"}${hasForeignTable ? ", with migrations of another program" : ""}`,
    mend: use === "migration" ? mendPathForTables(facts) : hasTables || schemas.length === 0 ? null : mendPath(facts),
  };
}

function mendPathForTables({ schema, hasForeignTable, database, role }: Facts): string | null {
  const isOfPostgres = schema === null || schema.startsWith("pg_") || schema === "information_schema";
  if (!isOfPostgres && !hasForeignTable) return null;
  const set = `ALTER ROLE ${quote(role)} IN DATABASE ${quote(database)} SET search_path = vouchers;`;
  return `Run: CREATE SCHEMA IF NOT EXISTS vouchers AUTHORIZATION ${quote(role)}; ${set}`;
}

function mendPath({ schemas, database, role }: Facts): string {
  const [first = "", ...others] = schemas.map(quote);
  if (others.length === 0)
    return `The tables are in the schema ${first}, which ${quote(role)} may not use. As the owner, run: voucherctl \
db roles`;
  const set = `ALTER ROLE ${quote(role)} IN DATABASE ${quote(database)} SET search_path = ${first};`;
  return `Several schemas have the tables: ${[first, ...others].join(", ")}. Choose one, such as: ${set}`;
}

function findDefiners({ strayFunctions, schema }: Facts): Finding {
  const wanted = `${quote(schema ?? "")}, pg_temp`;
  const isMet = strayFunctions.length === 0;
  return {
    name: "search_path of functions",
    why: "Functions with the rights of the owner do not look where their caller chooses.",
    wanted,
    actual: isMet ? wanted : `another one in ${strayFunctions.join(", ")}`,
    mend: isMet
      ? null
      : `Run: ${strayFunctions.map((name) => `ALTER FUNCTION ${name} SET search_path = ${wanted};`).join(" ")}`,
  };
}

/** Judges how a pooler assigns connections. If it is not by session, nothing further can be compared. */
export function comparePooling(pooling: Pooling): Finding {
  return {
    name: "pooling",
    why: "Settings and prepared statements belong to a session.",
    wanted: "none or session",
    actual: pooling,
    mend: pooling === "transaction" ? "Set pool_mode = session in the pooler, or connect without it." : null,
  };
}

function findFunction({ refused, version }: Facts, name: FunctionName): Finding {
  const words = refused.get(name);
  // Postgres 17 has added the last parameter.
  const ofMessage = version < 170_000 ? "boolean, text, text" : "boolean, text, text, boolean";
  const signature = `${name}(${name === "pg_logical_emit_message" ? ofMessage : ""})`;
  const grant = `GRANT EXECUTE ON FUNCTION ${signature} TO PUBLIC;`;
  return {
    name,
    why: FUNCTIONS[name],
    wanted: "allowed",
    actual: words === undefined ? "allowed" : `refused (${words})`,
    mend: words === undefined ? null : `Use a server that has it. If only the right is missing, run: ${grant}`,
  };
}

function findSetting(facts: Facts, { name, why, value, orKept }: Setting & { value: string }): Finding[] {
  const found = facts.settings.get(name);
  if (found === undefined) return [];
  const isMet = found.value === value || found.value === orKept;
  return [{ name, why, wanted: value, actual: found.value, mend: isMet ? null : mendSetting(facts, name, value) }];
}

/** What an operator must do to remove a setting, which depends on where it was made. */
function mendSetting({ settings, database, role }: Facts, name: string, value: string): string {
  switch (settings.get(name)?.source) {
    case "database":
      return `Run: ALTER DATABASE ${quote(database)} RESET ${name};`;
    case "user":
      return `Run: ALTER ROLE ${quote(role)} RESET ${name};`;
    case "database user":
      return `Run: ALTER ROLE ${quote(role)} IN DATABASE ${quote(database)} RESET ${name};`;
    case "global":
      return `Run: ALTER ROLE ALL RESET ${name};`;
    case "command line":
      return "Take it off the server's command line.";
    case "client":
      return "Take it out of the options of DATABASE_URL.";
    case "session":
      return "The connection has set it, and a proxy or pooler does not keep it. Connect without that.";
    default:
      return `Run: ALTER SYSTEM SET ${name} = '${value}'; SELECT pg_reload_conf();`;
  }
}

/** A name as SQL writes it. */
function quote(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : pg.escapeIdentifier(name);
}
