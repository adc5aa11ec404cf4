import { readdirSync } from "node:fs";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { copyVouchers } from "../../src/db/copy.ts";
import { migrateDatabase } from "../../src/db/migrate.ts";
import { ROLES, type RoleName } from "../../src/db/roles/apply-roles.ts";
import { readStatements, type Statement } from "../../src/db/statements.ts";
import { makeRoles } from "../support/logins.ts";
import { type OwnPostgres, openOwnPostgres } from "../support/own-postgres.ts";
import { statementsOf } from "../support/statement-users.ts";
import { issueVouchers, makePartner } from "../support/supply.ts";

const DIRECTORY = new URL("../../src/db/", import.meta.url);
const STATEMENTS = new Map(
  readdirSync(DIRECTORY)
    .filter((file) => file.endsWith(".sql"))
    .flatMap((file) => Object.entries(readStatements(new URL(file, DIRECTORY)))),
);
const RUN_BY: Record<RoleName, Set<string>> = {
  pva_api: statementsOf("src/main.ts", "workers/main.ts"),
  pva_admin: statementsOf("src/cli/main.ts"),
};
/** SQLSTATE insufficient_privilege and restrict_violation. */
const NOT_ALLOWED = "42501";
const REFUSED_BY_TRIGGER = "23001";

let postgres: OwnPostgres;
let db: pg.Pool;
let owner: pg.PoolClient;

beforeAll(async () => {
  postgres = await openOwnPostgres();
  await postgres.superuser.query("CREATE DATABASE vouchers");
  await migrateDatabase(postgres.url("vouchers"));
  db = new pg.Pool({ connectionString: postgres.url("vouchers"), max: 2 });
  db.on("error", () => undefined);
  await makeRoles(db);
  owner = await db.connect();
  // A plan made for the NULLs below would be found empty and forget what it must be allowed to read.
  await owner.query("SET plan_cache_mode = force_generic_plan");
  for (const { name, text } of STATEMENTS.values()) await owner.query(`PREPARE ${name} AS ${text}`);
});

afterAll(async () => {
  owner.release();
  await db.end();
  await postgres.close();
});

/** Does `work` as a role and undoes it; returns the SQLSTATE that it failed with, or null. */
async function tryAs(role: RoleName, work: () => Promise<unknown>): Promise<string | null> {
  await owner.query("SAVEPOINT tried");
  try {
    await owner.query(`SET LOCAL ROLE ${role}`);
    await work();
    // What a deferred constraint reads at the commit is read with the same rights.
    await owner.query("SET CONSTRAINTS ALL IMMEDIATE");
    return null;
  } catch (error) {
    if (error instanceof pg.DatabaseError) return error.code ?? "";
    throw error;
  } finally {
    await owner.query("ROLLBACK TO tried");
  }
}

async function inRolledBack(work: () => Promise<void>): Promise<void> {
  await owner.query("BEGIN");
  await work().finally(() => owner.query("ROLLBACK"));
}

/** Has Postgres check every right that a statement needs, without running it. */
function explain({ name, text }: Statement): Promise<unknown> {
  const parameters = Math.max(0, ...Array.from(text.matchAll(/\$(\d+)/g), ([, number]) => Number(number)));
  return owner.query(`EXPLAIN EXECUTE ${name}${parameters === 0 ? "" : `(${Array(parameters).fill("NULL")})`}`);
}

interface Work {
  name: string;
  run: () => Promise<unknown>;
}

/** Everything that a role does in the database. */
function workOf(role: RoleName): Work[] {
  const statements = [...RUN_BY[role]].map((name) => {
    const statement = STATEMENTS.get(name);
    if (statement === undefined) throw new Error(`there is no statement ${name}`);
    return { name, run: () => explain(statement) };
  });
  // Issuing a batch copies its vouchers in.
  return role === "pva_admin" ? [...statements, { name: "copy", run: () => copyVouchers(owner, []) }] : statements;
}

interface Right {
  /** As GRANT and REVOKE name it. */
  words: string;
  kind: string;
  table: string;
  column: string | null;
}

/** The rights on tables and columns that a role was given. */
async function readRights(role: RoleName): Promise<Right[]> {
  const { rows } = await owner.query<Omit<Right, "words">>(
    `SELECT acl.privilege_type AS kind, c.relname AS table, NULL AS column
       FROM pg_class AS c, aclexplode(c.relacl) AS acl WHERE acl.grantee = $1::regrole
      UNION ALL
     SELECT acl.privilege_type, a.attrelid::regclass::text, a.attname
       FROM pg_attribute AS a, aclexplode(a.attacl) AS acl WHERE acl.grantee = $1::regrole
      ORDER BY 2, 1, 3`,
    [role],
  );
  return rows.map((row) => ({
    ...row,
    words: `${row.kind}${row.column === null ? "" : ` (${row.column})`} ON ${row.table}`,
  }));
}

it("every statement is run by the processes or by voucherctl", () => {
  const run = new Set([...RUN_BY.pva_api, ...RUN_BY.pva_admin]);
  expect([...STATEMENTS.keys()].filter((name) => !run.has(name))).toEqual([]);
});

describe.each(ROLES)("%s", (role) => {
  it("may run every statement of its programs; what is missing belongs into src/db/roles/grants.sql", async () => {
    await inRolledBack(async () => {
      const refused: string[] = [];
      for (const { name, run } of workOf(role)) if ((await tryAs(role, run)) !== null) refused.push(name);
      expect(refused).toEqual([]);
    });
  });

  it("has no right on a table or column that none of its statements needs", async () => {
    const rights = await readRights(role);
    expect(rights.length).toBeGreaterThan(30);
    const work = workOf(role);
    const needless: string[] = [];
    await inRolledBack(async () => {
      for (const { words } of rights) {
        await owner.query("SAVEPOINT less");
        await owner.query(`REVOKE ${words} FROM ${role}`);
        let missed = false;
        for (const { run } of work) {
          missed = (await tryAs(role, run)) === NOT_ALLOWED;
          if (missed) break;
        }
        await owner.query("ROLLBACK TO less");
        if (!missed) needless.push(words);
      }
    });
    expect(needless).toEqual([]);
  });

  it("may delete from no table and empty none", async () => {
    const { rows } = await owner.query<{ name: string }>(
      "SELECT oid::regclass::text AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')",
    );
    expect(rows.length).toBeGreaterThan(15);
    await inRolledBack(async () => {
      for (const { name } of rows) {
        for (const statement of [`DELETE FROM ${name}`, `TRUNCATE ${name} CASCADE`]) {
          expect(await tryAs(role, () => owner.query(statement)), statement).toBe(NOT_ALLOWED);
        }
      }
    });
  });

  it.each([
    "CREATE TABLE x ()",
    "CREATE TEMPORARY TABLE x ()",
    "CREATE SCHEMA x",
    "CREATE FUNCTION x() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE VIEW x AS SELECT 1",
    "CREATE SEQUENCE x",
    "CREATE INDEX x ON vouchers (code)",
    "CREATE TRIGGER x BEFORE UPDATE ON voucher_events FOR EACH ROW EXECUTE FUNCTION refuse_change('x')",
    "CREATE RULE x AS ON INSERT TO voucher_events DO INSTEAD NOTHING",
    "CREATE EXTENSION file_fdw",
    "CREATE ROLE x",
    "ALTER TABLE vouchers ADD COLUMN x int",
    "ALTER TABLE vouchers OWNER TO CURRENT_USER",
    "ALTER TABLE voucher_events DISABLE TRIGGER USER",
    "ALTER TABLE redemptions DROP CONSTRAINT redemptions_external_ref",
    "DROP TABLE sweep_positions",
    "DROP TRIGGER voucher_events_stay ON voucher_events",
    "DROP INDEX vouchers_pickable",
    "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
    "SET session_replication_role = replica",
    "GRANT SELECT ON vouchers TO PUBLIC",
    "COPY vouchers TO PROGRAM 'true'",
  ])("is refused: %s", async (statement) => {
    await inRolledBack(async () => {
      // Who may do nothing at all on a table is refused for that; who has a right but may not pass it on is warned and ignored.
      const ignored = statement.startsWith("GRANT");
      expect(await tryAs(role, () => owner.query(statement))).toBe(ignored ? null : NOT_ALLOWED);
      const { rows } = await owner.query("SELECT has_table_privilege('public', 'vouchers', 'SELECT') AS public");
      expect(rows).toEqual([{ public: false }]);
    });
  });
});

describe("pva_api", () => {
  const as = (statement: string, values: unknown[] = []) => tryAs("pva_api", () => owner.query(statement, values));

  it("may change an event in no other way than by sealing it, and that once", async () => {
    const partner = await makePartner(db);
    const [voucher] = await issueVouchers(db, partner, 1);
    await inRolledBack(async () => {
      await owner.query(
        `INSERT INTO voucher_events (voucher_id, sequence, event_type, occurred_at, seal_status, data)
         VALUES ($1, 2, 'voucher.instance.voided', now(), 'Pending', '{}')`,
        [voucher?.id],
      );
      const columns = await owner.query<{ name: string }>(
        "SELECT attname AS name FROM pg_attribute WHERE attrelid = 'voucher_events'::regclass AND attnum > 0 AND NOT attisdropped",
      );
      const seal = ["payload", "previous_hash", "record_hash", "seal_status"];
      const refused = [];
      for (const { name } of columns.rows) {
        if ((await as(`UPDATE voucher_events SET ${name} = ${name}`)) === NOT_ALLOWED) refused.push(name);
      }
      expect(refused.toSorted()).toEqual(
        columns.rows
          .map(({ name }) => name)
          .filter((name) => !seal.includes(name))
          .toSorted(),
      );
      const sealing = `UPDATE voucher_events SET seal_status = 'Sealed', payload = $1, previous_hash = sha256('a'),
                              record_hash = sha256(convert_to($1, 'UTF8')) WHERE sequence = $2`;
      expect(await as(sealing, ["{}", 2])).toBeNull();
      expect(await as(sealing, ["{}", 1])).toBe(REFUSED_BY_TRIGGER);
      const unsealing =
        "UPDATE voucher_events SET seal_status = 'Pending', payload = NULL, previous_hash = NULL, record_hash = NULL";
      expect(await as(`${unsealing} WHERE sequence = 1`)).toBe(REFUSED_BY_TRIGGER);
    });
  });

  it.each([
    ["changes no burn", "UPDATE redemptions SET external_ref = 'other'"],
    ["moves no burn to another voucher", "UPDATE redemptions SET voucher_id = 'vch_other'"],
    ["makes no voucher", "INSERT INTO vouchers (id) VALUES ('vch_x')"],
    ["changes no code", "UPDATE vouchers SET code = 'FREE', code_key = 'FREE'"],
    ["moves no voucher to another organization", "UPDATE vouchers SET organization_id = 'org_x'"],
    ["makes no key", "INSERT INTO api_keys (id, scopes) VALUES ('key_x', '{voucher.read}')"],
    ["gives no key a secret", "INSERT INTO api_key_secrets (key_id, secret_hash) VALUES ('key_x', sha256('x'))"],
    ["gives no key another scope", "UPDATE api_keys SET scopes = '{voucher.redeem}'"],
    ["unlocks no key", "UPDATE api_keys SET allow_ips = '{}', revoked_at = NULL"],
    ["makes nobody an owner", "INSERT INTO members (organization_id, user_id, role) VALUES ('org_x', 'me', 'owner')"],
    ["opens no window", "UPDATE batch_windows SET closes_at = NULL"],
    ["changes no price", "UPDATE batches SET price_usd = 0"],
    ["lengthens no batch", "UPDATE batches SET valid_until = 'infinity'"],
    ["lengthens no hold", "UPDATE reservations SET expires_at = 'infinity'"],
    ["gives no hold to another key", "UPDATE reservations SET key_id = 'key_x'"],
    ["lengthens no contract", "UPDATE referrer_contracts SET ends_at = NULL"],
    ["moves the beginning of the records to no other day", "UPDATE deployment SET canon_preserved_since = now()"],
    ["does not learn who its partners are", "SELECT name FROM organizations"],
    ["does not know the migrations", "SELECT * FROM migrations"],
    ["does not read what administration did", "SELECT * FROM admin_acts"],
    [
      "claims no act of administration",
      `INSERT INTO admin_acts (os_user, host, command, arguments, entity_type, entity_id, after)
       VALUES ('root', 'host', 'key revoke', '{}', 'ApiKey', 'key_x', '{}')`,
    ],
  ])("%s", async (_what, statement) => {
    await inRolledBack(async () => expect(await as(statement)).toBe(NOT_ALLOWED));
  });
});
