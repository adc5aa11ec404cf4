import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { explainMigration } from "../../../src/cli/explain-migration.ts";
import { problemsOf } from "../../../src/platform/checks.ts";
import { connectClient } from "../../../src/platform/db/client.ts";
import { migrateDatabase } from "../../../src/platform/db/migrate.ts";
import {
  checkDatabase,
  DURABLE,
  SETTINGS,
  type ServerFacts,
  settingsFor,
  type Use,
} from "../../../src/platform/db/requirements.ts";
import { DEFINERS, prepareSession, UnmetRequirement } from "../../../src/platform/db/session.ts";
import { type OwnPostgres, openOwnPostgres } from "../../support/own-postgres.ts";
import { expectRedeems } from "../../support/redeem-on.ts";
import { openServicePool, openTestServers, type TestServers } from "../../support/servers.ts";
import { openVoucherctl } from "../../support/voucherctl.ts";

// Uses its own server, whose roles and databases have their own settings.

const OWNER = { name: "keeper", password: "the-owners-own-password" };
const API = { name: "pva_api", password: "the-processes-own-password" };

const COMPARED = SETTINGS.filter(({ isOnlyCompared }) => isOnlyCompared).map(({ name }) => name);

let postgres: OwnPostgres;
let servers: TestServers;
let sockets: string;
const voucherctl = openVoucherctl({ adminUrl: "", redisUrl: "" });

beforeAll(async () => {
  sockets = mkdtempSync(join(tmpdir(), "voucher-sockets-"));
  chmodSync(sockets, 0o777);
  postgres = await openOwnPostgres([`unix_socket_directories=${sockets}`]);
  await run(`CREATE ROLE ${OWNER.name} LOGIN CREATEROLE PASSWORD '${OWNER.password}'`);
  await run(`CREATE DATABASE migrated OWNER ${OWNER.name}`);
  await migrateDatabase(ownerOf("migrated"));
  servers = await openTestServers();
});

afterAll(async () => {
  await servers.close();
  await postgres.close();
  rmSync(sockets, { recursive: true });
});

let databases = 0;

it("the list of hostile settings covers every setting that the code depends on", () => {
  expect(Object.keys(HOSTILE).sort()).toEqual(SETTINGS.map(({ name }) => name).sort());
});

describe("settings of a database or a role", () => {
  it.each<[string, (database: string) => string]>([
    ["the database", (database) => `ALTER DATABASE ${database}`],
    ["the role", () => `ALTER ROLE ${OWNER.name}`],
    ["the role in the database", (database) => `ALTER ROLE ${OWNER.name} IN DATABASE ${database}`],
    ["every role", () => "ALTER ROLE ALL"],
  ])("a connection of each use sets the settings that it needs, despite the settings of %s", async (_of, alter) => {
    const database = await makeDatabase();
    const known = await knownSettings();
    const hostile = Object.entries(HOSTILE).filter(([name]) => known.has(name) && !COMPARED.includes(name));
    onTestFinished(() => run(`${alter(database)} RESET ALL`));
    for (const [name, value] of hostile) await run(`${alter(database)} SET ${name} = ${quoted(value)}`);
    for (const use of ["service", "administration", "migration"] satisfies Use[]) {
      const client = await connectClient(ownerOf(database), "test");
      // Checks this setting last, because the first error ends the connection.
      expect((await client.query("SHOW DateStyle")).rows).toEqual([{ DateStyle: "German, DMY" }]);
      await prepareSession(client, { use, openAnother: null });
      const wanted = settingsFor(use).filter(({ name }) => known.has(name));
      const found: Record<string, string> = {};
      for (const { name } of wanted) {
        const { rows } = await client.query({ text: `SHOW ${name}`, rowMode: "array" });
        found[name] = (rows as string[][])[0]?.[0] ?? "";
      }
      expect(found).toEqual(Object.fromEntries(wanted.map(({ name, value }) => [name, value])));
      await client.end();
    }
  });

  it("the service migrates, makes its roles and redeems in a database with every hostile setting", async () => {
    const database = await makeDatabase();
    const known = await knownSettings();
    for (const [name, value] of Object.entries(HOSTILE))
      if (known.has(name) && !COMPARED.includes(name))
        await run(`ALTER DATABASE ${database} SET ${name} = ${quoted(value)}`);
    await migrateDatabase(ownerOf(database));
    await makeGrantees(ownerOf(database));
    await expectRedeems(servers, { ownerUrl: ownerOf(database), databaseUrl: apiOf(database) });
  });

  it.each(
    COMPARED.flatMap((name) =>
      [
        (database: string) => `ALTER DATABASE ${database}`,
        () => `ALTER ROLE ${OWNER.name}`,
        (database: string) => `ALTER ROLE ${OWNER.name} IN DATABASE ${database}`,
        () => "ALTER ROLE ALL",
        () => "ALTER SYSTEM",
      ].map((alter) => [name, alter("db"), alter] as const),
    ),
  )("migrations and processes refuse a hostile %s until the setting is reset with %s", async (name, _at, alter) => {
    const database = await makeMigrated();
    const reset = () => run(`${alter(database)} RESET ${name}`, "SELECT pg_reload_conf()");
    onTestFinished(reset);
    await run(`${alter(database)} SET ${name} = ${quoted(HOSTILE[name] ?? "")}`, "SELECT pg_reload_conf()");
    const sentence = await refusalOf(ownerOf(database));
    expect(sentence).toContain(`${name} is ${HOSTILE[name]}. Needed: `);
    expect(await processRefusalOf(ownerOf(database))).toBe(sentence);
    await reset();
    expect(await migrateDatabase(ownerOf(database))).toEqual([]);
  });

  it("the service keeps a configured synchronous_commit = remote_apply, because it is stricter", async () => {
    const database = await makeDatabase();
    await run(`ALTER DATABASE ${database} SET synchronous_commit = remote_apply`);
    const client = await connectClient(ownerOf(database), "test");
    await prepareSession(client, { use: "service", openAnother: null });
    expect((await client.query("SHOW synchronous_commit")).rows).toEqual([{ synchronous_commit: "remote_apply" }]);
    await client.end();
  });
});

it.each([
  "LATIN1",
  "SQL_ASCII",
  "LATIN9",
])("a database in %s is refused, and the options in the message create a valid database", async (encoding) => {
  const database = await makeDatabase(`TEMPLATE template0 ENCODING '${encoding}' LOCALE 'C'`);
  const sentence = await refusalOf(ownerOf(database));
  expect(sentence).toContain(`server_encoding is ${encoding}. Needed: UTF8.`);
  expect(await processRefusalOf(ownerOf(database))).toBe(sentence);
  const { rows } = await postgres.superuser.query(
    `SELECT count(*)::int AS tables FROM pg_class WHERE relname = 'migrations'`,
  );
  expect(rows).toEqual([{ tables: 0 }]);
  onTestFinished(() => run(`DROP DATABASE ${database}_utf8 WITH (FORCE)`));
  const [options = ""] = /TEMPLATE [^,]+/.exec(sentence) ?? [];
  await run(`CREATE DATABASE ${database}_utf8 OWNER ${OWNER.name} ${options}`);
  expect((await migrateDatabase(ownerOf(`${database}_utf8`))).length).toBeGreaterThan(20);
});

describe("the schema of the tables", () => {
  /** Lists the schemas with tables or functions of the service. */
  async function schemasOf(database: string): Promise<string[]> {
    const { rows } = await onDatabase(database, (client) =>
      client.query<{ name: string }>(
        `SELECT DISTINCT n.nspname AS name FROM pg_namespace AS n
          WHERE n.nspname !~ '^(pg_|information_schema)'
            AND (EXISTS (SELECT FROM pg_class AS c WHERE c.relnamespace = n.oid)
                 OR EXISTS (SELECT FROM pg_proc AS p WHERE p.pronamespace = n.oid))`,
      ),
    );
    return rows.map(({ name }) => name);
  }

  it.each<[string, string, (database: string) => string[], string?]>([
    ["that is named like the owner", "keeper", () => [`CREATE SCHEMA keeper AUTHORIZATION ${OWNER.name}`]],
    [
      "that the owner's search_path names",
      'Gut & "Gern", é',
      (database) => [
        `CREATE SCHEMA "Gut & ""Gern"", é" AUTHORIZATION ${OWNER.name}`,
        `ALTER ROLE ${OWNER.name} IN DATABASE ${database} SET search_path = "nowhere", "Gut & ""Gern"", é", public`,
      ],
    ],
    [
      "that the database's search_path names",
      "select",
      (database) => [
        `CREATE SCHEMA "select" AUTHORIZATION ${OWNER.name}`,
        `ALTER DATABASE ${database} SET search_path = "select"`,
      ],
    ],
    [
      "that the options of DATABASE_URL name",
      "by_options",
      () => [`CREATE SCHEMA by_options AUTHORIZATION ${OWNER.name}`],
      "-c search_path=by_options",
    ],
  ])("the service works in a schema %s", async (_title, schema, statements, options) => {
    const database = await makeDatabase();
    await runIn(database, ...statements(database), "CREATE TABLE public.migrations (id integer, timestamp bigint)");
    const owner = new URL(ownerOf(database));
    if (options !== undefined) owner.searchParams.set("options", options);
    await migrateDatabase(owner.href);
    await runIn(database, "DROP TABLE public.migrations");
    await makeGrantees(owner.href);
    expect(await schemasOf(database)).toEqual([schema]);
    // The processes need no search_path, because they look for the tables' schema.
    await expectRedeems(servers, { ownerUrl: owner.href, databaseUrl: apiOf(database) });
    expect(await schemasOf(database)).toEqual([schema]);
  });

  it("two deployments in one database use their own schemas", async () => {
    const database = await makeMigrated();
    await runIn(database, `CREATE SCHEMA second AUTHORIZATION ${OWNER.name}`);
    const inSecond = (url: string) =>
      Object.assign(new URL(url), { search: "?options=-c%20search_path%3Dsecond" }).href;
    await migrateDatabase(inSecond(ownerOf(database)));
    await makeGrantees(inSecond(ownerOf(database)));
    await expectRedeems(servers, { ownerUrl: inSecond(ownerOf(database)), databaseUrl: inSecond(apiOf(database)) });
    await runIn(database, "DO $$ BEGIN ASSERT NOT EXISTS (SELECT FROM public.redemptions); END $$");
  });

  it("a process refuses a role whose search_path names none of the schemas with the tables", async () => {
    const database = await makeDatabase();
    for (const schema of ["first", "second"]) {
      await runIn(database, `CREATE SCHEMA ${schema} AUTHORIZATION ${OWNER.name}`);
      await migrateDatabase(`${ownerOf(database)}?options=-c%20search_path%3D${schema}`);
      await makeGrantees(`${ownerOf(database)}?options=-c%20search_path%3D${schema}`);
    }
    const sentence = await processRefusalOf(apiOf(database));
    expect(sentence).toContain("search_path is public; the tables are in first, second. Needed: ");
    await run(`ALTER ROLE pva_api IN DATABASE ${database} SET search_path = first`);
    const pool = openServicePool(apiOf(database));
    expect((await pool.query("SHOW search_path")).rows).toEqual([{ search_path: "first, pg_temp" }]);
    await pool.end();
    await run(`ALTER ROLE pva_api IN DATABASE ${database} RESET ALL`);
  });

  it("a role without rights on the tables' schema is refused with the advice to run db roles", async () => {
    const database = await makeDatabase();
    await runIn(database, `CREATE SCHEMA keeper AUTHORIZATION ${OWNER.name}`);
    await migrateDatabase(ownerOf(database));
    await run(`CREATE ROLE newcomer LOGIN PASSWORD 'newcomer'`);
    onTestFinished(() => run("DROP ROLE newcomer"));
    const sentence = await processRefusalOf(postgres.url(database, { name: "newcomer", password: "newcomer" }));
    expect(sentence).toMatch(/; the tables are in keeper\..* run as the owner: voucherctl db roles$/);
  });

  it.each([
    "",
    "nowhere",
    "pg_catalog",
  ])("a migration refuses a search_path of '%s' until it names a schema that exists", async (path) => {
    const database = await makeDatabase();
    await run(`ALTER DATABASE ${database} SET search_path = '${path}'`);
    expect(await refusalOf(ownerOf(database))).toMatch(/A schema for new tables must exist/);
    await useNewSchema(database);
    await migrateDatabase(ownerOf(database));
    expect(await schemasOf(database)).toEqual(["vouchers"]);
  });

  it("a migration refuses a schema that has another program's migrations", async () => {
    const database = await makeDatabase();
    await runIn(database, "CREATE TABLE public.migrations (id integer, timestamp bigint, name text)");
    const sentence = await refusalOf(ownerOf(database));
    expect(sentence).toContain("search_path is public, with migrations of another program.");
    await useNewSchema(database);
    expect((await migrateDatabase(ownerOf(database))).length).toBeGreaterThan(20);
  });

  it("a renamed schema is refused while functions search the old schema, with these functions' names", async () => {
    const database = await makeDatabase();
    await runIn(database, `CREATE SCHEMA keeper AUTHORIZATION ${OWNER.name}`);
    await migrateDatabase(ownerOf(database));
    await runIn(database, "ALTER SCHEMA keeper RENAME TO moved");
    const sentence = await processRefusalOf(ownerOf(database));
    const [, functions = ""] = /search_path of functions is another one in (.*)\. Needed: /.exec(sentence) ?? [];
    expect(functions).toContain("add_mark()");
    const names = functions.split(/(?<=\)), /);
    await runIn(
      database,
      "SET search_path = moved",
      ...names.map((name) => `ALTER FUNCTION ${name} SET search_path = moved, pg_temp`),
    );
    await makeGrantees(ownerOf(database));
    await expectRedeems(servers, { ownerUrl: ownerOf(database), databaseUrl: apiOf(database) });
  });
});

describe("the functions that the service needs", () => {
  it("the list DEFINERS has all SECURITY DEFINER functions that the migrations create", async () => {
    const { rows } = await servers.db.query<{ name: string }>(
      "SELECT proname AS name FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace ORDER BY 1",
    );
    expect(rows.map(({ name }) => name)).toEqual(DEFINERS);
  });

  it.each([
    "pg_current_wal_lsn()",
    "pg_control_system()",
    "pg_logical_emit_message(boolean, text, text, boolean)",
  ])("a server is refused while the service has no right to call %s", async (signature) => {
    const database = await makeMigrated();
    await runIn(database, `REVOKE EXECUTE ON FUNCTION ${signature} FROM PUBLIC`);
    const sentence = await refusalOf(ownerOf(database));
    expect(sentence).toMatch(/^pg_\w+ is refused \(permission denied.*\)\. Needed: allowed\./);
    expect(await processRefusalOf(ownerOf(database))).toBe(sentence);
    await runIn(database, `GRANT EXECUTE ON FUNCTION ${signature} TO PUBLIC`);
    expect(await migrateDatabase(ownerOf(database))).toEqual([]);
  });

  it("a server that refuses to report its WAL position is refused with the server's message", async () => {
    const database = await makeMigrated();
    await runIn(
      database,
      "ALTER FUNCTION pg_catalog.pg_current_wal_lsn() RENAME TO its_own_wal_lsn",
      `CREATE FUNCTION pg_catalog.pg_current_wal_lsn() RETURNS pg_lsn LANGUAGE plpgsql AS
         $$ BEGIN RAISE 'this engine has no write-ahead log' USING ERRCODE = 'feature_not_supported'; END $$`,
    );
    const sentence = "pg_current_wal_lsn is refused (this engine has no write-ahead log). Needed: allowed.";
    expect(await refusalOf(ownerOf(database))).toContain(sentence);
    expect(await processRefusalOf(ownerOf(database))).toContain(sentence);
  });
});

it("migrations and redeems work over a Unix socket to the database", async () => {
  const database = await makeDatabase();
  const { port } = new URL(postgres.url(database));
  const at = ({ name, password }: typeof OWNER) =>
    `postgres://${name}:${password}@/${database}?host=${sockets}&port=${port}`;
  await migrateDatabase(at(OWNER));
  await makeGrantees(at(OWNER));
  await expectRedeems(servers, { ownerUrl: at(OWNER), databaseUrl: at(API) });
});

it("db check lists each requirement with the server's value, and exits with 1 if any is not met", async () => {
  const database = await makeMigrated();
  const env = { DATABASE_URL: ownerOf(database), REDIS_URL: "" };
  const known = await knownSettings();
  const { stdout } = await voucherctl.run(["db", "check", "--json"], env);
  const { requirements } = JSON.parse(stdout);
  const settings = settingsFor("service").filter(({ name }) => known.has(name));
  // durability.test.ts tests the durability settings.
  expect(requirements.splice(-4).map(({ name }: { name: string }) => name)).toEqual(DURABLE);
  expect(requirements).toEqual(
    [
      ["pooling", "none"],
      ["server version", "18"],
      ["server_encoding", "UTF8"],
      ["search_path", "public"],
      ["search_path of functions", "public, pg_temp"],
      ["row level security", "no hidden rows"],
      ...["pg_current_wal_lsn", "pg_control_system", "pg_logical_emit_message"].map((name) => [name, "allowed"]),
      ...settings.map(({ name, value }) => [name, value]),
      ["role of the server", "primary"],
    ].map(([name, actual]) => ({ name, actual, wanted: expect.any(String), why: expect.any(String), mend: null })),
  );
  await run(`ALTER DATABASE ${database} SET default_transaction_read_only = on`);
  const refused = await voucherctl.run(["db", "check"], env);
  expect(refused).toMatchObject({ exitCode: 1, stderr: "" });
  expect(refused.stdout).toMatch(/^TimeZone +UTC +UTC /m);
  expect(refused.stdout).toMatch(/^default_transaction_read_only +on +off /m);
  expect(refused.stdout).toMatch(
    /^default_transaction_read_only is on\. Needed: off\. .*\. pg_settings\.source says /m,
  );
});

it("a server older than PostgreSQL 15 is refused", () => {
  const facts: ServerFacts = {
    use: "service",
    pooling: "none",
    isStandby: false,
    filteredTables: [],
    encoding: "UTF8",
    schema: "public",
    hasTables: true,
    hasForeignTable: false,
    schemas: ["public"],
    version: 140_013,
    strayFunctions: [],
    settings: new Map(),
    refused: new Map(),
  };
  const refusals = (found: ServerFacts) =>
    problemsOf(checkDatabase(found)).flatMap(({ effect, message }) => (effect === "refused" ? [message] : []));
  expect(refusals(facts)).toEqual([
    "server version is 14. Needed: 15 or newer. Statements and migrations use what it has. Upgrade the server.",
  ]);
  expect(refusals({ ...facts, version: 150_000 })).toEqual([]);
});

it("a process and db check name a table whose row level security hides rows", async () => {
  const database = await makeDatabase();
  // As Supabase offers it.
  await runIn(
    database,
    `CREATE FUNCTION switch_on() RETURNS event_trigger LANGUAGE plpgsql AS $$
     DECLARE made text;
     BEGIN
       FOR made IN SELECT object_identity FROM pg_event_trigger_ddl_commands() WHERE object_type = 'table' LOOP
         EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', made);
       END LOOP;
     END $$`,
    "CREATE EVENT TRIGGER switch_on ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION switch_on()",
  );
  await migrateDatabase(ownerOf(database));
  await makeGrantees(ownerOf(database));
  // Migrations still work, because row level security hides nothing from the owner.
  expect(await migrateDatabase(ownerOf(database))).toEqual([]);
  const sentence = await processRefusalOf(apiOf(database));
  expect(sentence).toMatch(/row level security is on for this role in .*organizations.*vouchers.* Needed: /);
  const checked = await voucherctl.run(["db", "check"], { DATABASE_URL: apiOf(database), REDIS_URL: "" });
  expect(checked.exitCode).toBe(1);
  expect(checked.stdout).toContain(sentence);
});

it("the service accepts functions that were changed with quote_all_identifiers on", async () => {
  const database = await makeDatabase();
  await migrateDatabase(ownerOf(database));
  await runIn(
    database,
    "SET quote_all_identifiers = on",
    'ALTER FUNCTION add_mark() SET search_path = "public", pg_temp',
  );
  const { rows } = await onDatabase(database, (client) =>
    client.query("SELECT proconfig[1] AS path FROM pg_proc WHERE proname = 'add_mark'"),
  );
  expect(rows).toEqual([{ path: 'search_path="public", "pg_temp"' }]);
  expect(await migrateDatabase(ownerOf(database))).toEqual([]);
  await makeGrantees(ownerOf(database));
  await expectRedeems(servers, { ownerUrl: ownerOf(database), databaseUrl: apiOf(database) });
});

function quoted(value: string): string {
  return pg.escapeLiteral(value);
}

/** Runs statements as the superuser, one by one. */
async function run(...statements: string[]): Promise<void> {
  for (const statement of statements) await postgres.superuser.query(statement);
}

async function runIn(database: string, ...statements: string[]): Promise<void> {
  await onDatabase(database, async (client) => {
    for (const statement of statements) await client.query(statement);
  });
}

async function onDatabase<T>(database: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await connectClient(postgres.url(database), "test");
  return work(client).finally(() => client.end());
}

/** Creates an empty database of the owner, and drops it after the test. Returns its name. */
async function makeDatabase(options = ""): Promise<string> {
  databases += 1;
  const name = `vouchers_${databases}`;
  await run(`CREATE DATABASE ${name} OWNER ${OWNER.name} ${options}`);
  onTestFinished(() => run(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
  return name;
}

/** Creates a database with all tables, as a copy, because a migration takes a second. A copy cannot redeem. */
const makeMigrated = () => makeDatabase("TEMPLATE migrated");

/** Grants the roles their rights, and lets pva_api log in. */
async function makeGrantees(ownerUrl: string): Promise<void> {
  const env = { DATABASE_URL: ownerUrl, PVA_API_PASSWORD: API.password };
  expect(await voucherctl.run(["db", "roles"], env)).toMatchObject({ exitCode: 0, stderr: "" });
}

/** Returns how a migration, a process and voucherctl refuse a database: all with the same message. */
async function refusalOf(databaseUrl: string): Promise<string> {
  const migration = await migrateDatabase(databaseUrl).catch((error: unknown) => error);
  expect(migration).toBeInstanceOf(UnmetRequirement);
  const { message } = migration as Error;
  expect(explainMigration(migration)).toEqual({ message, exitCode: 78 });
  return message;
}

async function processRefusalOf(databaseUrl: string): Promise<string> {
  const pool = openServicePool(databaseUrl);
  const refusal = await pool.query("SELECT 1").catch((error: unknown) => error);
  await pool.end();
  expect(refusal).toBeInstanceOf(UnmetRequirement);
  const { message } = refusal as Error;
  const env = { DATABASE_URL: databaseUrl, REDIS_URL: "" };
  expect(await voucherctl.run(["org", "list"], env)).toEqual({ exitCode: 78, stdout: "", stderr: `${message}\n` });
  return message;
}

/** Gives the owner a schema for new tables. */
async function useNewSchema(database: string): Promise<void> {
  const owner = `ALTER ROLE ${OWNER.name} IN DATABASE ${database}`;
  onTestFinished(() => run(`${owner} RESET ALL`));
  await runIn(database, `CREATE SCHEMA vouchers AUTHORIZATION ${OWNER.name}`, `${owner} SET search_path = vouchers`);
}

async function knownSettings(): Promise<Set<string>> {
  const { rows } = await postgres.superuser.query<{ name: string }>("SELECT name FROM pg_settings");
  return new Set(rows.map(({ name }) => name));
}

/** For each setting, a value that would break or slow down the service. */
const HOSTILE: Record<string, string> = {
  client_encoding: "LATIN1",
  DateStyle: "German, DMY",
  IntervalStyle: "iso_8601",
  TimeZone: "Asia/Kolkata",
  standard_conforming_strings: "off",
  bytea_output: "escape",
  extra_float_digits: "-15",
  quote_all_identifiers: "on",
  array_nulls: "off",
  default_transaction_isolation: "serializable",
  default_transaction_deferrable: "on",
  default_transaction_read_only: "on",
  session_replication_role: "replica",
  synchronous_commit: "off",
  client_min_messages: "error",
  exit_on_error: "on",
  statement_timeout: "1s",
  lock_timeout: "1ms",
  idle_in_transaction_session_timeout: "1s",
  transaction_timeout: "2s",
  idle_session_timeout: "2s",
  check_function_bodies: "on",
  plan_cache_mode: "force_custom_plan",
  enable_seqscan: "on",
  enable_hashjoin: "on",
  enable_mergejoin: "on",
  enable_material: "on",
  enable_memoize: "on",
  enable_nestloop: "off",
  enable_indexscan: "off",
  enable_indexonlyscan: "off",
  enable_bitmapscan: "off",
  jit: "on",
};

const ownerOf = (database: string) => postgres.url(database, OWNER);
const apiOf = (database: string) => postgres.url(database, API);
