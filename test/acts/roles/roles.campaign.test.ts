import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { EXIT } from "../../../src/cli/exit-code.ts";
import { migrateDatabase } from "../../../src/platform/db/migrate.ts";
import type { Ended } from "../../support/child-process.ts";
import { openLastingPool } from "../../support/lasting-pool.ts";
import { type OwnPostgres, openOwnPostgres } from "../../support/own-postgres.ts";
import { openVoucherctl } from "../../support/voucherctl.ts";

const ROLES = ["pva_api", "pva_log", "pva_admin"];
const OWNER = { name: "keeper", password: "the-owners-own-password" };

let postgres: OwnPostgres;
const voucherctl = openVoucherctl({ adminUrl: "", redisUrl: "" });
let db: pg.Pool;
let lastAct = 0;

beforeAll(async () => {
  postgres = await openOwnPostgres();
  await postgres.superuser.query(`CREATE ROLE ${OWNER.name} LOGIN PASSWORD '${OWNER.password}'`);
  await postgres.superuser.query(`CREATE DATABASE vouchers OWNER ${OWNER.name}`);
  await postgres.superuser.query(`CREATE DATABASE unmigrated OWNER ${OWNER.name}`);
  db = openLastingPool({ connectionString: postgres.url("vouchers"), max: 2 });
  await migrateDatabase(postgres.url("vouchers", OWNER));
});

afterAll(async () => {
  await db.end();
  await postgres.close();
});

// These tests run in order, because each begins with the state that the previous one left.
it("voucherctl db roles without the right to create roles fails and changes nothing", async () => {
  await expectRefusal(/permission denied to create role/, EXIT.config);
  expect(await readRights()).toEqual([]);
  await postgres.superuser.query(`ALTER ROLE ${OWNER.name} CREATEROLE`);
});

it("voucherctl db roles says that a database has no migrations, and changes nothing", async () => {
  await expectRefusal(/not been migrated/, EXIT.config, "unmigrated");
  expect(await readRights()).toEqual([]);
});

it("voucherctl db roles refuses a password that is short or has unusual characters, and never prints it", async () => {
  for (const password of ["fifteen-symbols", "sixteen symbols and", "sechzehn-grüße-aus"]) {
    const { exitCode, stdout, stderr } = await run([], { PVA_ADMIN_PASSWORD: password });
    expect({ exitCode, stdout }).toEqual({ exitCode: EXIT.config, stdout: "" });
    expect(stderr).toContain("PVA_ADMIN_PASSWORD");
    expect(stderr).not.toContain(password);
  }
  expect(await readRights()).toEqual([]);
});

it("voucherctl db roles lets the database's owner create roles, and revokes excess rights of PUBLIC", async () => {
  const { exitCode, stdout, stderr } = await run(["--json"]);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  expect(JSON.parse(stdout)).toStrictEqual({
    roles: ROLES.map((name) => ({ name, created: true, login: false, passwordSet: false })),
    takenFromPublic: ["TEMPORARY on database vouchers"],
    others: [],
  });
  expect(await readRights()).toContain("pva_api SELECT redemptions");
  expect(await readRights()).toContain("pva_api f f f f");
  const [act, ...more] = await takeActs();
  expect(more).toEqual([]);
  expect(act?.before).toMatchObject({ roles: [], passwordsSet: [] });
  expect(act?.before.rights).toContain("PUBLIC TEMPORARY ON DATABASE vouchers");
  expect(act?.after).toMatchObject({
    roles: ["pva_admin NOLOGIN", "pva_api NOLOGIN", "pva_log NOLOGIN"],
    passwordsSet: [],
  });
  expect(act?.after.rights).toContain("pva_api UPDATE (payload) ON voucher_events");
  expect(act?.after.rights).not.toContain("PUBLIC TEMPORARY ON DATABASE vouchers");
});

const PASSWORDS = {
  PVA_API_PASSWORD: "first-Pass:word/1@",
  PVA_LOG_PASSWORD: "the-sequencer's%20one",
  PVA_ADMIN_PASSWORD: "an-administrator's\\\"$",
};

it("voucherctl db roles sets login passwords from the environment, and nothing logs them", async () => {
  await expect(logIn("pva_api", PASSWORDS.PVA_API_PASSWORD)).rejects.toThrow(/authentication failed|not permitted/);
  const before = (await readRights()).filter((line) => !/^pva_\w+ [tf] /.test(line));
  const { exitCode, stdout, stderr } = await run(["--json"], PASSWORDS);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  expect(JSON.parse(stdout)).toStrictEqual({
    roles: ROLES.map((name) => ({ name, created: false, login: true, passwordSet: true })),
    takenFromPublic: [],
    others: [],
  });
  expect(await logIn("pva_api", PASSWORDS.PVA_API_PASSWORD)).toBe("pva_api");
  expect(await logIn("pva_admin", PASSWORDS.PVA_ADMIN_PASSWORD)).toBe("pva_admin");
  await expect(logIn("pva_admin", PASSWORDS.PVA_API_PASSWORD)).rejects.toThrow(/authentication failed/);
  expect((await readRights()).filter((line) => !/^pva_\w+ [tf] /.test(line))).toEqual(before);

  const log = postgres.readLog();
  expect(log).toMatch(/statement: ALTER ROLE pva_api LOGIN PASSWORD/);
  const acts = await takeActs();
  expect(acts).toMatchObject([
    {
      after: {
        roles: ["pva_admin LOGIN", "pva_api LOGIN", "pva_log LOGIN"],
        passwordsSet: ["pva_api", "pva_log", "pva_admin"],
      },
    },
  ]);
  for (const password of Object.values(PASSWORDS)) {
    expect(stdout + log + JSON.stringify(acts)).not.toContain(password);
  }
});

it("voucherctl db roles changes nothing in a second run, and keeps passwords that are not given", async () => {
  const before = await readRights();
  const { exitCode, stdout } = await run();
  expect({ exitCode, stdout }).toEqual({
    exitCode: 0,
    stdout: ROLES.map((name) => `${name}: already existed, grants are up to date, logs in as before.\n`).join(""),
  });
  expect(await readRights()).toEqual(before);
  expect(await takeActs()).toEqual([]);
  expect(await logIn("pva_api", PASSWORDS.PVA_API_PASSWORD)).toBe("pva_api");
});

it("voucherctl db roles replaces a password", async () => {
  const password = "another-password-2";
  expect((await run([], { PVA_API_PASSWORD: password })).exitCode).toBe(0);
  expect(await logIn("pva_api", password)).toBe("pva_api");
  await expect(logIn("pva_api", PASSWORDS.PVA_API_PASSWORD)).rejects.toThrow(/authentication failed/);
  expect(await takeActs()).toMatchObject([{ after: { passwordsSet: ["pva_api"] } }]);
});

it("voucherctl db roles revokes excess rights, and grants no right on an unknown table", async () => {
  const before = await readRights();
  await db.query(`
      CREATE TABLE newcomers (id serial);
      ALTER TABLE newcomers OWNER TO ${OWNER.name};
      GRANT USAGE ON SEQUENCE newcomers_id_seq TO pva_api;
      CREATE TABLE of_another_owner ();
      GRANT SELECT ON newcomers TO pva_admin;
      GRANT DELETE ON vouchers TO pva_api;
      GRANT UPDATE (external_ref) ON redemptions TO pva_api;
      GRANT CREATE ON SCHEMA public TO pva_admin;
      REVOKE SELECT ON vouchers FROM pva_api`);
  expect(await readRights()).not.toEqual(before);
  // This run creates no role and sets no password, so it does not need the right to create roles.
  await postgres.superuser.query(`ALTER ROLE ${OWNER.name} NOCREATEROLE`);
  expect((await run()).exitCode).toBe(0);
  expect(await readRights()).toEqual(before);
  const [act] = await takeActs();
  expect(act?.before.rights).toContain("pva_api DELETE ON vouchers");
  expect(act?.after.rights).not.toContain("pva_api DELETE ON vouchers");
  await db.query("DROP TABLE newcomers, of_another_owner");
  await postgres.superuser.query(`ALTER ROLE ${OWNER.name} CREATEROLE`);
});

it("voucherctl db roles changes rights on functions even if all other rights are right", async () => {
  const before = await readRights();
  await db.query(`
      GRANT EXECUTE ON FUNCTION advance_sandbox TO pva_log;
      REVOKE EXECUTE ON FUNCTION advance_sandbox FROM pva_api`);
  expect(await readRights()).not.toEqual(before);
  expect((await run()).exitCode).toBe(0);
  expect(await readRights()).toEqual(before);
  const [act] = await takeActs();
  expect(act?.before.rights).toContain("pva_log EXECUTE ON FUNCTION advance_sandbox");
  expect(act?.after.rights).toContain("pva_api EXECUTE ON FUNCTION advance_sandbox");
});

it("voucherctl db roles restores each kind of right on a schema other than public", async () => {
  await db.query(`CREATE SCHEMA "House" AUTHORIZATION ${OWNER.name}`);
  const url = `${postgres.url("vouchers", OWNER)}?options=${encodeURIComponent('-c search_path="House"')}`;
  await migrateDatabase(url);
  const grant = () => run([], { DATABASE_URL: url });
  expect((await grant()).exitCode).toBe(0);
  const granted = await readRights();
  expect(granted).toContain('pva_api INSERT "House".redemptions');
  for (const take of [
    `SELECT (owner, used) ON "House".erasure_keys`,
    `INSERT ON "House".redemptions`,
    `EXECUTE ON FUNCTION "House".erased_form`,
    `USAGE ON SCHEMA "House"`,
  ]) {
    await db.query(`REVOKE ${take} FROM pva_api`);
    expect(await readRights(), take).not.toEqual(granted);
    expect((await grant()).exitCode).toBe(0);
    expect(await readRights(), take).toEqual(granted);
  }
  await db.query('DROP SCHEMA "House" CASCADE');
});

it("voucherctl db roles revokes CREATE from PUBLIC, which upgrades from PostgreSQL 14 still grant", async () => {
  await db.query("GRANT CREATE ON SCHEMA public TO PUBLIC");
  const { stdout } = await run(["--json"]);
  expect(JSON.parse(stdout).takenFromPublic).toEqual(["CREATE on schema public"]);
  const { rows } = await db.query("SELECT has_schema_privilege('pva_api', 'public', 'CREATE') AS may");
  expect(rows).toEqual([{ may: false }]);
});

it.each([
  [
    "an attribute",
    "ALTER ROLE pva_api SUPERUSER",
    "ALTER ROLE pva_api NOSUPERUSER",
    /pva_api has the attribute SUPERUSER/,
  ],
  [
    "another role",
    "GRANT pg_read_all_data TO pva_admin",
    "REVOKE pg_read_all_data FROM pva_admin",
    /pva_admin is a member of pg_read_all_data/,
  ],
  [
    "owning a table",
    "CREATE TABLE theirs (); ALTER TABLE theirs OWNER TO pva_api",
    "DROP TABLE theirs",
    /pva_api owns theirs/,
  ],
])("voucherctl db roles changes nothing if a role has excess rights by %s", async (_by, give, take, sentence) => {
  await db.query(give);
  try {
    await expectRefusal(sentence, EXIT.refused);
  } finally {
    await db.query(take);
  }
  expect((await run()).exitCode).toBe(0);
});

/** Runs `voucherctl db roles` as the ordinary role that owns the database. */
function run(args: string[] = [], env: Record<string, string> = {}, database = "vouchers"): Promise<Ended> {
  return voucherctl.run(["db", "roles", ...args], { DATABASE_URL: postgres.url(database, OWNER), ...env });
}

async function expectRefusal(sentence: RegExp, status: number, database?: string): Promise<void> {
  const before = await readRights();
  const { exitCode, stdout, stderr } = await run(["--json"], {}, database);
  expect({ exitCode, stdout }).toEqual({ exitCode: status, stdout: "" });
  expect(stderr).toMatch(sentence);
  expect(stderr).not.toMatch(/^\s+at .+:\d+/m);
  expect(await readRights()).toEqual(before);
}

/** Lists the attributes of the roles and their rights on the database, the schema, tables, columns and functions. */
async function readRights(): Promise<string[]> {
  const { rows } = await db.query<{ line: string }>(
    `SELECT concat_ws(' ', rolname, rolcanlogin, rolsuper, rolcreatedb, rolcreaterole) AS line
       FROM pg_roles WHERE rolname = ANY ($1)
      UNION ALL
     SELECT concat_ws(' ', r.rolname, a.privilege_type, a.what)
       FROM pg_roles AS r
       JOIN (SELECT acl.*, d.datname::text AS what FROM pg_database AS d, aclexplode(d.datacl) AS acl
              WHERE d.datname = current_database()
              UNION ALL
             SELECT acl.*, n.nspname::text FROM pg_namespace AS n, aclexplode(n.nspacl) AS acl
              UNION ALL
             SELECT acl.*, c.oid::regclass::text FROM pg_class AS c, aclexplode(c.relacl) AS acl
              UNION ALL
             SELECT acl.*, t.attrelid::regclass || '.' || t.attname FROM pg_attribute AS t, aclexplode(t.attacl) AS acl
              UNION ALL
             SELECT acl.*, p.oid::regprocedure::text FROM pg_proc AS p, aclexplode(p.proacl) AS acl
            ) AS a ON a.grantee = r.oid
      WHERE r.rolname = ANY ($1)
      ORDER BY 1`,
    [ROLES],
  );
  return rows.map((row) => row.line);
}

interface Recorded {
  before: { roles: string[]; rights: string[]; passwordsSet: string[] };
  after: { roles: string[]; rights: string[]; passwordsSet: string[] };
}

/** Returns the audit entries since the previous call, oldest first. */
async function takeActs(): Promise<Recorded[]> {
  const { rows } = await db.query(
    `SELECT id, database_role, command, entity_type, entity_id, before, after
       FROM audit_entries WHERE id > $1 ORDER BY id`,
    [lastAct],
  );
  lastAct = rows.at(-1)?.id ?? lastAct;
  for (const row of rows) {
    expect(row).toMatchObject({
      database_role: OWNER.name,
      command: "db roles",
      entity_type: "DatabaseRoles",
      entity_id: "vouchers",
    });
  }
  return rows;
}

async function logIn(name: string, password: string): Promise<string> {
  const client = new pg.Client({ connectionString: postgres.url("vouchers", { name, password }) });
  await client.connect();
  try {
    return (await client.query("SELECT current_user AS name")).rows[0].name;
  } finally {
    await client.end();
  }
}
