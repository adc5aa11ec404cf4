import { type Check, type Checked, runCheck } from "../checks.ts";

// Everything that the code requires from Postgres: in each session, and from the server and its database. `session.ts`
// sets and checks it on each new connection, and `voucherctl db check` prints it.

/** The purpose of a connection. */
export type Use = "service" | "administration" | "migration";

/** Maximum duration of a partner-facing statement. Lock waits have their own, shorter limit. Milliseconds. */
export const STATEMENT_TIMEOUT_MS = 10_000;
/**
 * Maximum wait of a migration for one lock. Later statements on the same table wait as long. Statements of the service
 * would give up only after 250 ms. Milliseconds.
 */
export const MIGRATION_LOCK_TIMEOUT_MS = 100;

/** A setting of a session. */
interface Setting {
  name: string;
  /** What depends on the setting. */
  why: string;
  /** The value that the connection sets, as Postgres shows it: one for all connections, or one by their {@link Use}. */
  value: string | Partial<Record<Use, string>>;
  /** Another value that also meets the requirement, and is left unchanged. */
  orKept?: string;
  /**
   * True if the connection only compares the setting, because only a superuser may set it, or because operators use it
   * to stop all writes.
   */
  isOnlyCompared?: true;
}

/**
 * Planner settings for the service's statements, which look up limited numbers of keys by index. Postgres makes a
 * generic plan once per connection, which saves a millisecond per redemption, and keeps it until the next ANALYZE. So a
 * plan that was made for empty tables must stay fast while they grow. The settings allow only nested loops over
 * indexes. They allow no cache of rows (Memoize), which would cost a small batch more than it saves. Three expressions
 * in the statements prevent such a loop from reading a whole index, as `test/platform/db/plans.campaign.test.ts`
 * proves:
 *
 * - `t.id = ANY (ARRAY[w.id])` uses the index like `t.id = w.id`, but a join cannot start with `t`.
 * - `(r.state = 'Live') IS NOT FALSE` does not imply the predicate of a partial index.
 * - `OFFSET 0` prevents Postgres from merging a subquery that searches by key into the outer query.
 *
 * JIT is off. These settings raise the estimated costs above its threshold, so each call would compile its plan.
 */
export const FIXED_PLANS: Readonly<Record<string, string>> = {
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_material: "off",
  enable_memoize: "off",
  enable_nestloop: "on",
  enable_indexscan: "on",
  enable_indexonlyscan: "on",
  enable_bitmapscan: "on",
  jit: "off",
};

/** Every setting on which the code depends, except `search_path`, which `session.ts` sets to the tables' schema. */
export const SETTINGS: readonly Setting[] = [
  { name: "client_encoding", value: "UTF8", why: "Texts are sent and read as UTF-8." },
  { name: "DateStyle", value: "ISO, MDY", why: "Times are read in the ISO form." },
  { name: "IntervalStyle", value: "postgres", why: "Intervals have the same text everywhere." },
  { name: "TimeZone", value: "UTC", why: "Days have 24 hours, and texts of times are compared between sessions." },
  { name: "standard_conforming_strings", value: "on", why: "A backslash in a text is a backslash." },
  { name: "bytea_output", value: "hex", why: "Bytes are read in this form." },
  { name: "extra_float_digits", value: "1", why: "Numbers are read in full." },
  { name: "quote_all_identifiers", value: "off", why: "Names of tables and functions are read as texts." },
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
    // The limit is short, because most transactions hold locks for a few milliseconds. `waitForLocks` sets another
    // limit for one transaction.
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

/** The settings for one use, each with its value. */
export function settingsFor(use: Use): (Setting & { value: string })[] {
  return SETTINGS.flatMap((setting) => {
    const value = typeof setting.value === "string" ? setting.value : setting.value[use];
    return value === undefined ? [] : [{ ...setting, value }];
  });
}

/**
 * Functions that the code needs but some servers refuse: servers without superusers, and servers that only speak the
 * protocol of Postgres.
 */
const FUNCTIONS = {
  pg_current_wal_lsn: "A former primary is recognized by the timeline of its write-ahead log.",
  pg_control_system: "A copy of the database is recognized by the server's identifier.",
  pg_logical_emit_message: "A COMMIT that only confirms what was read waits for the standbys.",
} as const;
export type FunctionName = keyof typeof FUNCTIONS;

const VERSION_MIN = 15;

/** Whether a pooler assigns server connections to sessions or to transactions. `none`: there is no pooler. */
export type Pooling = "none" | "session" | "transaction";

/** The facts that a connection has found. */
export interface ServerFacts {
  use: Use;
  pooling: Pooling;
  /** The version as in `server_version_num`. */
  version: number;
  encoding: string;
  isStandby: boolean;
  /** The schema that the session uses. Null if no schema of search_path exists. */
  schema: string | null;
  /** Whether `schema` has the service's tables. */
  hasTables: boolean;
  /** Whether `schema` has another program's table with the name of the service's migration table. */
  hasForeignTable: boolean;
  /** The schemas of this database that have the service's tables. */
  schemas: readonly string[];
  /** Functions that run with the owner's rights and search another schema for tables. */
  strayFunctions: readonly string[];
  /** Tables of which row level security hides rows from the role. */
  filteredTables: readonly string[];
  /** Settings by name. Settings that the server does not know are missing. */
  settings: ReadonlyMap<string, string>;
  /** For each function that the server refuses, the server's message. */
  refused: ReadonlyMap<FunctionName, string>;
}

/** A check of the database. By default, an unmet check refuses the server, and its sentence ends with `remedy`. */
type Row = Pick<Check<ServerFacts>, "what" | "why" | "wanted" | "query" | "isMet"> &
  Partial<Pick<Check<ServerFacts>, "sentence" | "code" | "effect">> & { remedy?: string };

const toCheck = ({ remedy = "", ...row }: Row): Check<ServerFacts> => ({
  code: "requirement",
  effect: "refused",
  sentence: (value) => `${row.what} is ${value}. Needed: ${row.wanted}. ${row.why} ${remedy}`.trimEnd(),
  ...row,
});

/** Checked first. If a pooler does not keep sessions, the other facts cannot be read. */
export const POOLING: Check<Pick<ServerFacts, "pooling">> = toCheck({
  what: "pooling",
  why: "Settings and prepared statements belong to a session.",
  wanted: "none or session",
  query: ({ pooling }) => pooling,
  isMet: (pooling) => pooling !== "transaction",
  remedy: "Set pool_mode = session in the pooler, or connect without it.",
});

/** Requirements for the server, the database and the role. */
const DATABASE: readonly Row[] = [
  {
    what: "server version",
    why: "Statements and migrations use what it has.",
    wanted: `${VERSION_MIN} or newer`,
    query: ({ version }) => String(Math.floor(version / 10_000)),
    isMet: (major) => Number(major) >= VERSION_MIN,
    remedy: "Upgrade the server.",
  },
  {
    what: "server_encoding",
    why: "References and names may have every character of Unicode.",
    wanted: "UTF8",
    query: ({ encoding }) => encoding,
    remedy: "Create a database with TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C', and name it in DATABASE_URL.",
  },
  {
    what: "search_path",
    why: "All tables and functions are in one schema.",
    wanted: "the schema of the tables",
    query: describePath,
    isMet: (_path, facts) => isOfTables(facts),
    remedy:
      "Set it for the role in this database. A schema for new tables must exist and have no other program's " +
      "migrations. If the role may not use the schema of the tables, run as the owner: voucherctl db roles",
  },
  {
    what: "search_path of functions",
    why: "Functions with the rights of the owner do not look where their caller chooses.",
    wanted: "the schema of the tables, pg_temp",
    query: ({ strayFunctions, schema }) => listOr(`${schema}, pg_temp`, "another one in", strayFunctions),
    isMet: (_path, { use, strayFunctions }) => use === "migration" || strayFunctions.length === 0,
    remedy: "Run for each of them: ALTER FUNCTION … SET search_path = …, pg_temp",
  },
  {
    what: "row level security",
    why: "A hidden row would be missing without an error.",
    wanted: "no hidden rows",
    query: ({ filteredTables }) => listOr("no hidden rows", "on for this role in", filteredTables),
    remedy:
      "Run for each of them: ALTER TABLE … DISABLE ROW LEVEL SECURITY. If an event trigger has switched it on, it " +
      "will do so for the tables of later migrations too.",
  },
  ...Object.entries(FUNCTIONS).map(
    ([name, why]): Row => ({
      what: name,
      why,
      wanted: "allowed",
      query: ({ refused }) => {
        const words = refused.get(name as FunctionName);
        return words === undefined ? "allowed" : `refused (${words})`;
      },
      remedy: "Use a server that has it. If only the right is missing, grant EXECUTE on this function.",
    }),
  ),
];

/**
 * Settings that decide whether acknowledged work survives a crash or a failover. On a standby they are not checked,
 * because its primary may have other settings.
 */
const DURABILITY: readonly Row[] = [
  {
    what: "role of the server",
    why: "Only the primary takes writes.",
    wanted: "primary",
    query: ({ isStandby }) => (isStandby ? "standby" : "primary"),
    code: "standby",
    sentence: () => "DATABASE_URL leads to a standby. It must always lead to the primary.",
  },
  durable("fsync", "fsync_off", "a crash of its host can lose everything."),
  durable("full_page_writes", "full_page_writes_off", "a crash of its host can leave damaged pages."),
  {
    what: "synchronous_standby_names",
    why: "Acknowledged redemptions are on two disks.",
    wanted: "names of standbys",
    query: settingOf("synchronous_standby_names"),
    isMet: (names, { isStandby }) => isStandby || names !== "",
    code: "no_synchronous_standby",
    sentence: () =>
      "Postgres has no synchronous standby (synchronous_standby_names is empty): if the primary's disk is lost or a " +
      "standby is promoted, acknowledged redemptions can be missing and their vouchers redeemed again.",
  },
  {
    what: "restart_after_crash",
    why: "After a crash, a standby that has every acknowledged transaction takes over.",
    wanted: "off with synchronous standbys",
    query: settingOf("restart_after_crash"),
    isMet: (value, { isStandby, settings }) =>
      isStandby || value !== "on" || settings.get("synchronous_standby_names") === "",
    code: "restart_after_crash",
    sentence: () =>
      "Postgres has restart_after_crash = on with synchronous standbys: after a crash it serves transactions that " +
      "no standby has. Set it to off.",
  },
];

function durable(what: string, code: string, loss: string): Row {
  const isMet = (value: string, { isStandby }: ServerFacts) => isStandby || value === "on";
  const sentence = (value: string) => `Postgres has ${what} = ${value}: ${loss}`;
  return { what, why: "A crash undoes nothing.", wanted: "on", query: settingOf(what), isMet, code, sentence };
}

/** The settings to read in addition to {@link SETTINGS}. */
export const DURABLE = ["fsync", "full_page_writes", "synchronous_standby_names", "restart_after_crash"];

/** Checks the facts that a connection has found. */
export function checkDatabase(facts: ServerFacts): Checked[] {
  const settings = settingsFor(facts.use).filter(({ name }) => facts.settings.has(name));
  const rows = [...DATABASE, ...settings.map(toRow), ...DURABILITY.map((row): Row => ({ ...row, effect: "risk" }))];
  return [POOLING, ...rows.map(toCheck)].map((check) => runCheck(check, [facts]));
}

function toRow({ name, why, value, orKept, isOnlyCompared }: Setting & { value: string }): Row {
  return {
    what: name,
    why,
    wanted: value,
    query: settingOf(name),
    isMet: (found) => found === value || found === orKept,
    remedy: isOnlyCompared
      ? "pg_settings.source says where it was set."
      : "The connection sets it, and a proxy or pooler does not keep it. Connect without that.",
  };
}

function settingOf(name: string): (facts: ServerFacts) => string {
  return ({ settings }) => settings.get(name) ?? "";
}

function listOr(none: string, words: string, list: readonly string[]): string {
  return list.length === 0 ? none : `${words} ${list.join(", ")}`;
}

/**
 * Whether the session's schema is right. A migration needs a schema for the tables, and all other programs need the
 * schema that has them. If no schema has them, a later error reports the missing tables.
 */
function isOfTables({ use, schema, hasTables, hasForeignTable, schemas }: ServerFacts): boolean {
  if (use !== "migration") return hasTables || schemas.length === 0;
  return schema !== null && !/^(pg_|information_schema$)/.test(schema) && !hasForeignTable;
}

function describePath({ schema, hasTables, hasForeignTable, schemas }: ServerFacts): string {
  const foreign = hasForeignTable ? ", with migrations of another program" : "";
  const elsewhere = hasTables || schemas.length === 0 ? "" : `; the tables are in ${schemas.join(", ")}`;
  return `${schema ?? "no schema that exists"}${foreign}${elsewhere}`;
}
