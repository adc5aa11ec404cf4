import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { EXIT } from "../../../src/cli/exit-code.ts";
import { migrateDatabase } from "../../../src/platform/db/migrate.ts";
import { MIGRATIONS } from "../../../src/platform/db/schema.ts";
import type { Ended } from "../../support/child-process.ts";
import { makeDataDirectory } from "../../support/data-directory.ts";
import { openLastingPool } from "../../support/lasting-pool.ts";
import { type OwnPostgres, openOwnPostgres } from "../../support/own-postgres.ts";
import { openVoucherctl } from "../../support/voucherctl.ts";

const OWNER = { name: "keeper", password: "the-owners-own-password" };
const PASSWORD = { PVA_API_PASSWORD: "of-production-1234" };
const voucherctl = openVoucherctl({ adminUrl: "", redisUrl: "" });
const taken: string[] = [];
let postgres: OwnPostgres;
let db: pg.Pool;

beforeAll(async () => {
  postgres = await openOwnPostgres();
  await postgres.superuser.query(`CREATE ROLE ${OWNER.name} LOGIN CREATEROLE PASSWORD '${OWNER.password}'`);
  for (const name of ["vouchers", "staging"]) await postgres.superuser.query(`CREATE DATABASE ${name} OWNER keeper`);
  db = openLastingPool({ connectionString: postgres.url("vouchers"), max: 2 });
  await giveDefaults();
  await db.query("SET ROLE keeper; CREATE TABLE theirs (id serial); RESET ROLE");
  await migrateDatabase(urlOf("vouchers"), { onRightsTaken: (grantees) => taken.push(...grantees) });
  await migrateDatabase(urlOf("staging"));
});

afterAll(async () => {
  await db.end();
  await postgres.close();
});

const urlOf = (database: string) => postgres.url(database, OWNER);

/** Runs the statements with which some hosting platforms prepare each new database. */
async function giveDefaults(): Promise<void> {
  const roles = "anon, authenticated, service_role";
  await db.query(
    roles
      .split(", ")
      .map((name) => `CREATE ROLE ${name} NOLOGIN`)
      .join("; "),
  );
  await db.query(`GRANT USAGE ON SCHEMA public TO ${roles}`);
  for (const kind of ["TABLES", "FUNCTIONS", "SEQUENCES"]) {
    await db.query(`ALTER DEFAULT PRIVILEGES FOR ROLE keeper IN SCHEMA public GRANT ALL ON ${kind} TO ${roles}`);
  }
}

const NOT_ALLOWED = "42501";

it.each([
  "SELECT code FROM vouchers",
  "DELETE FROM api_keys",
  "INSERT INTO operators (id, name, role) VALUES ('opr_1', 'x', 'admin')",
  "SELECT * FROM erase_user('someone', now())",
  "SELECT assert_row_count(1, 1, 'rows')",
  "SELECT nextval('log_batch_ids')",
  "TRUNCATE audit_entries",
])("a migration revokes rights that default privileges grant on its objects: %s", async (statement) => {
  expect(taken.toSorted()).toEqual(["PUBLIC", "anon", "authenticated", "service_role"]);
  for (const role of ["anon", "service_role"]) expect(await tryAs(role, statement)).toBe(NOT_ALLOWED);
  expect(await tryAs("keeper", "SELECT code FROM vouchers")).toBeNull();
});

it("a migration revokes default rights on its own objects, and keeps rights on other objects", async () => {
  const directory = makeDataDirectory("voucher-later-migration-");
  cpSync(MIGRATIONS, directory, { recursive: true });
  const { rows } = await db.query("SELECT max(id) + 1 AS next FROM migrations");
  const sql = "CREATE TABLE newcomers (id serial);\nCREATE FUNCTION newest() RETURNS int LANGUAGE sql AS 'SELECT 1';\n";
  writeFileSync(join(directory, `${String(rows[0].next).padStart(5, "0")}_newcomers.sql`), sql);
  await migrateDatabase(urlOf("vouchers"), { directory });
  const asAnon = ["TABLE newcomers", "SELECT newest()", "SELECT nextval('newcomers_id_seq')", "TABLE theirs"];
  expect(await Promise.all(asAnon.map((statement) => tryAs("anon", statement)))).toEqual([
    ...Array(3).fill(NOT_ALLOWED),
    null,
  ]);
});

it("voucherctl db check reports no other role's rights after migrations and voucherctl db roles", async () => {
  expect(await run(["roles"], PASSWORD)).toMatchObject({ exitCode: 0 });
  expect(await checkRights()).toEqual([]);
});

it.each([
  ["a table", "GRANT SELECT, DELETE ON api_keys TO clerk", /: clerk may DELETE, SELECT on api_keys\.$/],
  ["a column", "GRANT SELECT (code) ON vouchers TO clerk", /: clerk may SELECT \(code\) on vouchers\.$/],
  ["a sequence", "GRANT UPDATE ON SEQUENCE log_batch_ids TO clerk", /: clerk may UPDATE on log_batch_ids\.$/],
  ["a function", "GRANT EXECUTE ON FUNCTION add_mark TO clerk", /: clerk may EXECUTE on add_mark\.$/],
  ["the schema", "GRANT CREATE ON SCHEMA public TO clerk", /: clerk may CREATE on schema public\.$/],
  ["the owner's role", "GRANT keeper TO clerk", /: clerk is a member of keeper\.$/],
  ["a role that reads everything", "GRANT pg_read_all_data TO clerk", /: clerk may SELECT on .+ and \d+ more\.$/],
  ["a role of files", "GRANT pg_write_server_files TO clerk", /: clerk is a member of pg_write_server_files\.$/],
  ["another role", "GRANT SELECT ON vouchers TO readers; GRANT readers TO clerk", /: clerk may .*; readers may .*\.$/],
])("voucherctl db check and voucherctl db roles name a role with rights by %s", async (_by, give, sentence) => {
  await createRoles("clerk", "readers");
  await db.query(give);
  expect(await checkRights()).toEqual([expect.stringMatching(sentence)]);
  const { exitCode, stdout } = await run(["roles"]);
  expect(exitCode).toBe(0);
  expect(`: ${JSON.parse(stdout).others.join("; ").replaceAll(".;", ";")}`).toMatch(sentence);
  expect(await checkRights()).toEqual([expect.stringMatching(sentence)]);
});

it("voucherctl db roles revokes rights that PUBLIC and roles with default privileges have", async () => {
  await db.query("GRANT SELECT ON vouchers TO PUBLIC; GRANT ALL ON operators TO anon");
  // After a restore without grants, everyone may execute all functions.
  await db.query("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO PUBLIC");
  expect(await checkRights()).toEqual([
    expect.stringMatching(
      /: PUBLIC may EXECUTE on .+ and \d+ more; PUBLIC may SELECT on vouchers; anon may .+ on operators/,
    ),
  ]);
  expect(await run(["roles"])).toMatchObject({ exitCode: 0 });
  expect(await checkRights()).toEqual([]);
});

it("voucherctl db check accepts a login that is a member of one of the service's roles", async () => {
  await createRoles("clerk");
  await db.query("GRANT pva_admin, pva_log TO clerk");
  expect(await checkRights()).toEqual([]);
  await db.query("GRANT INSERT ON vouchers TO clerk");
  expect(await checkRights()).toEqual([expect.stringMatching(/: clerk may INSERT on vouchers\.$/)]);
});

it.each([
  ["a function", "EXECUTE ON FUNCTION erased_form", /pva_api lacks EXECUTE on erased_form/],
  ["a table", "SELECT ON vouchers", /pva_api lacks SELECT on vouchers/],
  ["a column", "UPDATE (pickable) ON vouchers", /pva_api lacks UPDATE \(pickable\) on vouchers/],
  ["a sequence", "USAGE ON SEQUENCE log_batch_ids", /pva_api lacks USAGE on log_batch_ids/],
])("voucherctl db check names a missing right on %s", async (_of, right, sentence) => {
  await db.query(`REVOKE ${right} FROM pva_api`);
  expect(await checkRights()).toEqual([expect.stringMatching(sentence)]);
  expect(await run(["roles"])).toMatchObject({ exitCode: 0 });
  expect(await checkRights()).toEqual([]);
});

it("voucherctl db roles refuses roles of another database on the server, and changes no password", async () => {
  const { exitCode, stderr } = await run(["roles"], { PVA_API_PASSWORD: "of-staging-1234567" }, "staging");
  expect({ exitCode, stderr }).toEqual({
    exitCode: EXIT.refused,
    stderr: expect.stringMatching(
      /pva_api, pva_log, pva_admin have rights in other databases .*: vouchers\. .*--prefix/,
    ),
  });
  expect(await logIn("pva_api", PASSWORD.PVA_API_PASSWORD, "vouchers")).toBe("pva_api");
});

it("voucherctl db roles --prefix creates separate roles, which later runs and voucherctl db check find", async () => {
  const own = { PVA_API_PASSWORD: "of-staging-1234567" };
  expect(await run(["roles", "--prefix", "stg"], own, "staging")).toMatchObject({ exitCode: 0 });
  expect(await logIn("stg_api", own.PVA_API_PASSWORD, "staging")).toBe("stg_api");
  expect(await logIn("pva_api", PASSWORD.PVA_API_PASSWORD, "vouchers")).toBe("pva_api");
  const again = await run(["roles"], {}, "staging");
  expect(JSON.parse(again.stdout).roles.map(({ name }: { name: string }) => name)).toEqual([
    ...["stg_api", "stg_log", "stg_admin"],
  ]);
  expect([...(await checkRights("staging")), ...(await checkRights())]).toEqual([]);
  const { rows } = await db.query("SELECT has_table_privilege('stg_api', 'vouchers', 'SELECT') AS may");
  expect(rows).toEqual([{ may: false }]);
});

it("voucherctl db roles with another prefix revokes the rights of the previous roles", async () => {
  expect(await run(["roles", "--prefix", "other"], {}, "staging")).toMatchObject({ exitCode: 0 });
  const { rows } = await postgres.superuser.query(
    "SELECT count(*)::int AS rights FROM pg_shdepend WHERE refobjid = 'stg_api'::regrole",
  );
  expect(rows).toEqual([{ rights: 0 }]);
  expect(await checkRights("staging")).toEqual([]);
});

it.each([
  "Upper",
  "a b",
  "x'; DROP TABLE vouchers",
  "pg",
  "pg_x",
  "1st",
])("voucherctl db roles refuses the prefix %s as wrong usage", async (prefix) => {
  const { exitCode, stderr } = await run(["roles", "--prefix", prefix], {}, "staging");
  expect({ exitCode, stderr }).toEqual({ exitCode: EXIT.usage, stderr: expect.stringContaining("small letters") });
});

async function logIn(name: string, password: string, database: string): Promise<string> {
  const client = new pg.Client({ connectionString: postgres.url(database, { name, password }) });
  await client.connect();
  try {
    return (await client.query("SELECT current_user AS name")).rows[0].name;
  } finally {
    await client.end();
  }
}

function run(verb: string[], env: Record<string, string> = {}, database = "vouchers"): Promise<Ended> {
  return voucherctl.run(["db", ...verb, "--json"], { DATABASE_URL: urlOf(database), ...env });
}

/** Returns what `voucherctl db check` says about rights. */
async function checkRights(database?: string): Promise<string[]> {
  const { exitCode, stdout } = await run(["check"], {}, database);
  // The command exits with 1 in any case, because the server has no standby, which is another risk.
  expect(exitCode).toBe(EXIT.refused);
  const { risks } = JSON.parse(stdout) as { risks: { code: string; message: string }[] };
  return risks.filter(({ code }) => code.startsWith("rights_of_")).map(({ message }) => message);
}

/** Runs a statement as a role. Returns the SQLSTATE of its error, or null. */
async function tryAs(role: string, statement: string): Promise<string | null> {
  const client = await db.connect();
  try {
    await client.query(`BEGIN; SET LOCAL ROLE ${role}`);
    return await client.query(statement).then(
      () => null,
      (error: pg.DatabaseError) => error.code ?? "",
    );
  } finally {
    await client.query("ROLLBACK");
    client.release();
  }
}

/** Creates roles without rights, and drops them after the test. */
async function createRoles(...names: string[]): Promise<void> {
  const drop = `DROP OWNED BY ${names.join(", ")}; DROP ROLE ${names.join(", ")}`;
  onTestFinished(() => db.query(drop).then(() => undefined));
  await db.query(names.map((name) => `CREATE ROLE ${name}`).join("; "));
}
