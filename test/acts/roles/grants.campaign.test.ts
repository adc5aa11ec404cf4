import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { applyGrants, DEFAULT_PREFIX } from "../../../src/acts/roles/apply-roles.ts";
import { copyVouchers } from "../../../src/core/chain/db/copy.ts";
import { migrateDatabase } from "../../../src/platform/db/migrate.ts";
import { readStatements, type SqlStatement } from "../../../src/platform/db/statements.ts";
import { pooledRandomBytes } from "../../../src/platform/random.ts";
import { openLastingPool } from "../../support/lasting-pool.ts";
import { makeGrantees } from "../../support/logins.ts";
import { type OwnPostgres, openOwnPostgres } from "../../support/own-postgres.ts";
import { findStatementFiles } from "../../support/source-files.ts";
import { statementsOf, statementsWithout } from "../../support/statement-users.ts";
import { issueVouchers, makePartner } from "../../support/supply.ts";

const ROLES = ["pva_api", "pva_log", "pva_admin"] as const;
type RoleName = (typeof ROLES)[number];
const ROOT = new URL("../../../", import.meta.url);
const statementsIn = (file: string) => Object.entries(readStatements(new URL(file, ROOT)));
const STATEMENTS = new Map(findStatementFiles().flatMap(statementsIn));
/** Statements that only the database's owner runs: to retire a log, and to check rights. */
const OF_OWNER = new Set([
  "insert_log_retirement",
  "rename_log_tree",
  "delete_published_of_retired",
  "delete_witness_sizes",
  "list_default_rights",
  "find_databases_of_roles",
]);
const NAMES = ["marketplace", "transparency", "webhooks"];
const RUN_BY: Record<RoleName, Set<string>> = {
  // pva_api runs neither the statements of the log's worker (as pva_log) nor those of acts (as pva_admin).
  pva_api: statementsWithout(
    /\/console\/(actions\/|webhook-forms)|\/issuer\/|^src\/acts\/(?!db|roles)[a-z]+\/|\/(webhooks|marketplace)\/acts/,
    "src/main.ts",
    ...["redeem", "seal", "sweep"].map((queue) => `workers/${queue}.ts`),
    ...NAMES.map((wing) => `src/${wing}/in-api.ts`),
    ...["worker", "sweep-tasks", "deliveries"].map((part) => `src/webhooks/${part}.ts`),
    "src/marketplace/sweep-tasks.ts",
  ),
  pva_log: new Set([
    ...statementsOf("src/transparency/run-log.ts"),
    // Every process runs these statements.
    ...["identify_database", "select_applied_migrations", "add_mark", "select_newest_mark", "recall_marks"],
    ...["record_process", "end_process"],
  ]),
  pva_admin: new Set(
    [
      // Each connection of the issuer API and of the console's forms runs `identify_database`.
      "identify_database",
      ...statementsOf("src/cli/main.ts", "src/issuer/endpoints.ts", "src/local/start.ts", "src/local/scale-check.ts"),
      ...statementsOf(...NAMES.map((wing) => `src/${wing}/in-voucherctl.ts`), "src/transparency/in-start.ts"),
    ].filter((statement) => !OF_OWNER.has(statement)),
  ),
};

let postgres: OwnPostgres;
let db: pg.Pool;
let owner: pg.PoolClient;

beforeAll(async () => {
  postgres = await openOwnPostgres();
  await postgres.superuser.query("CREATE DATABASE vouchers");
  await migrateDatabase(postgres.url("vouchers"));
  db = openLastingPool({ connectionString: postgres.url("vouchers"), max: 2 });
  await makeGrantees(db);
  owner = await db.connect();
  // With NULL parameters, a custom plan would leave out tables, so Postgres would not check the right to read them.
  await owner.query("SET plan_cache_mode = force_generic_plan; DEALLOCATE ALL");
  for (const { name, text } of STATEMENTS.values()) await owner.query(`PREPARE ${name} AS ${text}`);
});

afterAll(async () => {
  owner.release();
  await db.end();
  await postgres.close();
});

it("each SQL statement is run by a database role of the service or only by the owner", () => {
  const run = new Set([...Object.values(RUN_BY), OF_OWNER].flatMap((names) => [...names]));
  expect([...STATEMENTS.keys()].filter((name) => !run.has(name))).toEqual([]);
});

/** SQLSTATE insufficient_privilege and restrict_violation. */
const REFUSED_BY_TRIGGER = "23001";
const NOT_ALLOWED = "42501";

describe.each(ROLES)("the role %s", (role) => {
  it("a database role can run every statement of its programs (else add rights to grants.sql)", async () => {
    await inRolledBack(async () => {
      const refused: string[] = [];
      for (const { name, run } of workOf(role)) if ((await tryAs(role, run)) !== null) refused.push(name);
      expect(refused).toEqual([]);
    });
  });

  it("a database role can run every statement outside of wings without the grants of wings", async () => {
    await inRolledBack(async () => {
      await applyGrants(owner, pooledRandomBytes, {
        prefix: DEFAULT_PREFIX,
        passwords: { api: null, log: null, admin: null },
        grants: [],
      });
      const refused: string[] = [];
      for (const { name, run } of workOf(role).filter((one) => !OF_WINGS.has(one.name)))
        if ((await tryAs(role, run)) !== null) refused.push(name);
      expect(refused).toEqual([]);
    });
  });

  it("a database role has exactly the rights on tables and columns that its statements need", async () => {
    const rights = await readRights(role);
    expect(rights.length).toBeGreaterThan(role === "pva_log" ? 15 : 30);
    const work = workOf(role);
    const needless: string[] = [];
    await inRolledBack(async () => {
      for (const { words, kind, table, column } of rights) {
        // Tries first the statements that name the right's kind, table and column, which most likely need the right.
        const named = ({ text }: Work) => [kind, table, column ?? ""].filter((name) => text.includes(name)).length;
        await owner.query("SAVEPOINT less");
        await owner.query(`REVOKE ${words} FROM ${role}`);
        let missed = false;
        for (const { run } of work.toSorted((a, b) => named(b) - named(a))) {
          missed = (await tryAs(role, run)) === NOT_ALLOWED;
          if (missed) break;
        }
        await owner.query("ROLLBACK TO less");
        if (!missed) needless.push(words);
      }
    });
    expect(needless).toEqual([]);
  });

  it("no role may truncate a table; only pva_api may delete rows, and only from a few tables", async () => {
    const { rows } = await owner.query<{ name: string }>(
      `SELECT oid::regclass::text AS name FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')`,
    );
    expect(rows.length).toBeGreaterThan(15);
    await inRolledBack(async () => {
      for (const { name } of rows) {
        for (const statement of [`DELETE FROM ${name}`, `TRUNCATE ${name} CASCADE`]) {
          if (
            role === "pva_api" &&
            /^DELETE FROM (webhook_|reservations|reference_ends|activity_counts|acquired_counts|faults|processes)/.test(
              statement,
            )
          )
            continue;
          expect(await tryAs(role, () => owner.query(statement)), statement).toBe(NOT_ALLOWED);
        }
      }
    });
  });

  it("no role can choose a value of a sequence, except a leaf batch's id, which a trigger checks", async () => {
    const { rows } = await owner.query<{ chosen: string }>(
      `SELECT c.relname || '.' || a.attname AS chosen
         FROM pg_class AS c
         JOIN pg_attribute AS a ON a.attrelid = c.oid
         LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
          AND (a.attidentity = 'd' OR pg_get_expr(d.adbin, d.adrelid) ~ 'nextval')
          AND (has_column_privilege($1, c.oid, a.attnum, 'INSERT')
               OR has_column_privilege($1, c.oid, a.attnum, 'UPDATE'))
        UNION ALL
       SELECT c.relname FROM pg_class AS c
        WHERE c.relnamespace = 'public'::regnamespace
          AND CASE c.relkind WHEN 'S' THEN has_sequence_privilege($1, c.oid, 'UPDATE') END`,
      [role],
    );
    expect(rows).toEqual([]);
    const used = await owner.query<{ name: string }>(
      `SELECT relname AS name FROM pg_class
        WHERE relnamespace = 'public'::regnamespace
          AND CASE relkind WHEN 'S' THEN has_sequence_privilege($1, oid, 'USAGE') END`,
      [role],
    );
    // pva_log needs no right on the sequence: a trigger accepts only ids from it (see constraints.test.ts).
    expect(used.rows.map(({ name }) => name)).toEqual(role === "pva_log" ? [] : ["log_batch_ids"]);
  });

  it.each([
    "CREATE TABLE x ()",
    "CREATE TEMPORARY TABLE x ()",
    "CREATE SCHEMA x",
    "CREATE FUNCTION x() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE VIEW x AS SELECT 1",
    "CREATE SEQUENCE x",
    "CREATE INDEX x ON vouchers (code)",
    "CREATE TRIGGER x BEFORE UPDATE ON voucher_events FOR EACH ROW EXECUTE FUNCTION reject_change('x')",
    "CREATE RULE x AS ON INSERT TO voucher_events DO INSTEAD NOTHING",
    "CREATE EXTENSION file_fdw",
    "CREATE ROLE x",
    "ALTER TABLE vouchers ADD COLUMN x int",
    "ALTER TABLE vouchers OWNER TO CURRENT_USER",
    "ALTER TABLE voucher_events DISABLE TRIGGER USER",
    "ALTER TABLE redemptions DROP CONSTRAINT redemptions_external_ref",
    "DROP TABLE sweep_positions",
    "DROP TRIGGER voucher_events_permanent ON voucher_events",
    "DROP INDEX vouchers_pickable",
    "CREATE OR REPLACE FUNCTION reject_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
    "SET session_replication_role = replica",
    "GRANT SELECT ON vouchers TO PUBLIC",
    "COPY vouchers TO PROGRAM 'true'",
  ])("a database role cannot run: %s", async (statement) => {
    await inRolledBack(async () => {
      // If the role that runs a GRANT has the right without the grant option, the GRANT only warns and has no effect.
      const ignored = statement.startsWith("GRANT") && role !== "pva_log";
      expect(await tryAs(role, () => owner.query(statement))).toBe(ignored ? null : NOT_ALLOWED);
      const { rows } = await owner.query("SELECT has_table_privilege('public', 'vouchers', 'SELECT') AS public");
      expect(rows).toEqual([{ public: false }]);
    });
  });
});

describe("pva_api", () => {
  const as = (statement: string, values: unknown[] = []) => tryAs("pva_api", () => owner.query(statement, values));

  it("pva_api can change an event only once, by sealing it", async () => {
    const partner = await makePartner(db);
    const [voucher] = await issueVouchers(db, partner, 1);
    await inRolledBack(async () => {
      await owner.query(
        `INSERT INTO voucher_events (voucher_id, sequence, event_type, occurred_at, seal_status, data)
         VALUES ($1, 2, 'voucher.instance.voided', now(), 'Pending', '{}')`,
        [voucher?.id],
      );
      const columns = await owner.query<{ name: string }>(
        `SELECT attname AS name FROM pg_attribute
          WHERE attrelid = 'voucher_events'::regclass AND attnum > 0 AND NOT attisdropped`,
      );
      const seal = ["log_slot", "payload", "previous_hash", "record_hash", "seal_status"];
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

  it("pva_api can add an audit entry for an operator's view of a page, but for no change or command", async () => {
    const entry = (columns: string, values: string) =>
      `INSERT INTO audit_entries (os_user, host, command, arguments, entity_type, entity_id${columns})
       VALUES ('zoe', '192.0.2.1', ${values})`;
    await inRolledBack(async () => {
      expect(await as(entry("", "'page voucher', '{}', 'VoucherInstance', 'vch_x'"))).toBeNull();
      expect(await as(entry("", "'key revoke', '{}', 'ApiKey', 'key_x'"))).toBe("23514");
      for (const state of ["before", "after"]) {
        const claim = entry(`, ${state}`, "'page voucher', '{}', 'VoucherInstance', 'vch_x', '{}'");
        expect(await as(claim)).toBe(NOT_ALLOWED);
      }
    });
  });

  it.each([
    ["cannot change a redemption", "UPDATE redemptions SET external_ref = 'other'"],
    ["cannot move a redemption to another voucher", "UPDATE redemptions SET voucher_id = 'vch_other'"],
    ["cannot insert a voucher", "INSERT INTO vouchers (id) VALUES ('vch_x')"],
    ["cannot change a code", "UPDATE vouchers SET code = 'FREE', code_key = 'FREE'"],
    ["cannot move a voucher to another organization", "UPDATE vouchers SET organization_id = 'org_x'"],
    ["cannot insert an API key", "INSERT INTO api_keys (id, scopes) VALUES ('key_x', '{voucher.read}')"],
    ["cannot insert a secret", "INSERT INTO api_key_secrets (key_id, secret_hash) VALUES ('key_x', sha256('x'))"],
    ["cannot change scopes", "UPDATE api_keys SET scopes = '{voucher.redeem}'"],
    ["cannot restore a revoked key", "UPDATE api_keys SET allow_ips = '{}', revoked_at = NULL"],
    ["cannot insert an owner", "INSERT INTO members (organization_id, user_id, role) VALUES ('org_x', 'me', 'owner')"],
    ["cannot open a window", "UPDATE batch_windows SET closes_at = NULL"],
    ["cannot change a price", "UPDATE batches SET price_usd = 0"],
    ["cannot extend a batch", "UPDATE batches SET valid_until = 'infinity'"],
    ["cannot extend a reservation", "UPDATE reservations SET expires_at = 'infinity'"],
    ["cannot give a reservation to another key", "UPDATE reservations SET key_id = 'key_x'"],
    ["cannot extend a contract", "UPDATE referrer_contracts SET ends_at = NULL"],
    ["cannot change canon_preserved_since", "UPDATE deployment SET canon_preserved_since = now()"],
    ["cannot rename an organization", "UPDATE organizations SET name = 'Other'"],
    ["cannot change the list of migrations", "DELETE FROM migrations"],
    ["cannot create an operator", "INSERT INTO operators (id, name, role) VALUES ('opr_x', 'root', 'admin')"],
    ["cannot change an operator's role", "UPDATE operators SET role = 'admin'"],
    ["cannot give an operator a token", "INSERT INTO operator_tokens (token_hash, operator_id) VALUES ('', 'opr_x')"],
    ["cannot read audit entries", "SELECT * FROM audit_entries"],
    [
      "cannot insert an audit entry",
      `INSERT INTO audit_entries (os_user, host, command, arguments, entity_type, entity_id, after)
       VALUES ('root', 'host', 'key revoke', '{}', 'ApiKey', 'key_x', '{}')`,
    ],
  ])("pva_api %s", async (_what, statement) => {
    await inRolledBack(async () => expect(await as(statement)).toBe(NOT_ALLOWED));
  });
});

/** Statements that run only if the service has a wing, such as the marketplace. */
const WINGS = /^src\/(marketplace|transparency|webhooks)\//;
const OF_WINGS = new Set(
  findStatementFiles()
    .filter((file) => WINGS.test(file))
    .flatMap((file) => statementsIn(file).map(([name]) => name)),
)
  // These two statements belong to wings too: only acts of wings use them.
  .add("state_of_webhook_endpoint")
  .add("state_of_contract");

/** Runs `work` as a role and rolls it back. Returns the SQLSTATE of its error, or null if it succeeds. */
async function tryAs(role: RoleName, work: () => Promise<unknown>): Promise<string | null> {
  await owner.query("SAVEPOINT tried");
  try {
    await owner.query(`SET LOCAL ROLE ${role}`);
    await work();
    // Checks deferred constraints now, because their checks need rights as well.
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

/** Makes Postgres check the rights that a statement needs, without running it. */
function explain({ name, text }: SqlStatement): Promise<unknown> {
  const parameters = Math.max(0, ...Array.from(text.matchAll(/\$(\d+)/g), ([, number]) => Number(number)));
  return owner.query(`EXPLAIN EXECUTE ${name}${parameters === 0 ? "" : `(${Array(parameters).fill("NULL")})`}`);
}

interface Work {
  name: string;
  text: string;
  run: () => Promise<unknown>;
}

/**
 * Statements inside functions and triggers that pva_api runs. EXPLAIN of the calling statement does not check their
 * rights.
 */
const IN_FUNCTIONS: Work[] = [
  "SELECT move_event_feed(clock_timestamp())",
  `EXPLAIN INSERT INTO key_days AS d (key_id, day, redemptions, amount_usd) VALUES ('', '2027-01-01', 1, 1)
   ON CONFLICT (day, key_id) DO UPDATE SET redemptions = d.redemptions, amount_usd = d.amount_usd`,
].map((text) => ({ name: text, text, run: () => owner.query(text) }));

function workOf(role: RoleName): Work[] {
  const statements = [...RUN_BY[role]].map((name) => {
    const statement = STATEMENTS.get(name);
    if (statement === undefined) throw new Error(`there is no statement ${name}`);
    return { name, text: statement.text, run: () => explain(statement) };
  });
  // The next statement uses a sequence. Postgres must run it, because EXPLAIN does not check the right to do so.
  if (role === "pva_log") return statements;
  const sequence = { name: "sequence", text: "", run: () => owner.query("EXECUTE next_log_batch") };
  const work = [...statements, sequence, ...(role === "pva_api" ? IN_FUNCTIONS : [])];
  // voucherctl issues batches with COPY, which no statement file contains.
  const copy = { name: "copy", text: "", run: () => copyVouchers(owner, [], { id: 1, hashes: [] }) };
  return role === "pva_admin" ? [...work, copy] : work;
}

interface Right {
  /** The right as GRANT and REVOKE write it. */
  words: string;
  kind: string;
  table: string;
  column: string | null;
}

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
