import { readFileSync } from "node:fs";
import pg from "pg";
import { AppError } from "../../platform/api/errors.ts";
import type { RandomBytes } from "../../platform/base32.ts";
import type { Transaction } from "../../platform/db/pool.ts";
import { makeScramVerifier, SALT_BYTES } from "../../platform/scram-verifier.ts";

/**
 * The roles of the service's processes, of the sequencer of the log, and of voucherctl. They have only the rights that
 * their statements need.
 */
export const ROLES = ["pva_api", "pva_log", "pva_admin"] as const;
export type RoleName = (typeof ROLES)[number];

const GRANTS = readFileSync(new URL("./grants.sql", import.meta.url), "utf8");

/** The state of a role after {@link applyRoles}. */
export interface AppliedRole {
  name: RoleName;
  /** Whether this run created it. */
  created: boolean;
  /** Whether it can log in. If not, an operator grants it to another role that can log in. */
  login: boolean;
  /** Whether this run changed its password. */
  passwordSet: boolean;
}

export interface AppliedRoles {
  roles: AppliedRole[];
  /** Rights that this run revoked from PUBLIC. */
  takenFromPublic: string[];
}

/**
 * Creates the missing roles and gives each role the rights of `grants.sql` in this database. Run it after each
 * migration.
 * @param tx a transaction of the owner, who must be allowed to create roles if one is missing or gets a password.
 * @param passwords of visible ASCII characters. A role with a password can log in; only the password's SCRAM verifier
 * leaves this process. Null changes nothing.
 * @throws AppError `invalid_request`, with a list of the rights that a role has in excess of `grants.sql`.
 */
export async function applyRoles(
  tx: Transaction,
  randomBytes: RandomBytes,
  passwords: Record<RoleName, string | null>,
): Promise<AppliedRoles> {
  const takenFromPublic = await readRightsOfPublic(tx);
  const roles: AppliedRole[] = [];
  for (const name of ROLES) roles.push(await applyRole(tx, randomBytes, name, passwords[name]));
  await tx.query(GRANTS);
  await rejectExcess(tx);
  return { roles, takenFromPublic };
}

async function applyRole(
  tx: Transaction,
  randomBytes: RandomBytes,
  name: RoleName,
  password: string | null,
): Promise<AppliedRole> {
  const { rows } = await tx.query<{ login: boolean }>("SELECT rolcanlogin AS login FROM pg_roles WHERE rolname = $1", [
    name,
  ]);
  const created = rows[0] === undefined;
  if (created) await tx.query(`CREATE ROLE ${name} NOLOGIN`);
  if (password !== null) {
    const verifier = makeScramVerifier(password, Buffer.from(randomBytes(SALT_BYTES)));
    await tx.query(`ALTER ROLE ${name} LOGIN PASSWORD ${pg.escapeLiteral(verifier)}`);
  }
  return { name, created, login: password !== null || rows[0]?.login === true, passwordSet: password !== null };
}

/** The rights of PUBLIC in this database that the roles must not have. */
async function readRightsOfPublic(tx: Transaction): Promise<string[]> {
  const { rows } = await tx.query<{ what: string }>(
    `SELECT 'CREATE on schema ' || current_schema() AS what
      WHERE has_schema_privilege('public', current_schema(), 'CREATE')
      UNION ALL
     SELECT r.kind || ' on database ' || current_database() FROM unnest(ARRAY['CREATE', 'TEMPORARY']) AS r (kind)
      WHERE has_database_privilege('public', current_database(), r.kind)`,
  );
  return rows.map((row) => row.what);
}

/**
 * Tables from which the service deletes rows. It keeps webhook deliveries, unused reservations, ends of references,
 * counts and faults only for a limited time.
 */
const DELETED_FROM = [
  "reservations",
  "webhook_outbox",
  "webhook_deliveries",
  "webhook_endpoints",
  "reference_ends",
  "activity_counts",
  "acquired_counts",
  "faults",
];

/**
 * @throws AppError when a role has rights that the grants do not give: by an attribute, a membership, ownership, or
 * PUBLIC.
 */
async function rejectExcess(tx: Transaction): Promise<void> {
  const { rows } = await tx.query<{ what: string }>(
    `WITH role AS (SELECT * FROM pg_roles WHERE rolname = ANY ($1::text[]))
     SELECT rolname || ' has the attribute ' || a.name AS what
       FROM role, LATERAL (VALUES ('SUPERUSER', rolsuper), ('CREATEROLE', rolcreaterole), ('CREATEDB', rolcreatedb),
                                  ('REPLICATION', rolreplication), ('BYPASSRLS', rolbypassrls)) AS a (name, has)
      WHERE a.has
      UNION ALL
     SELECT rolname || ' is a member of ' || m.roleid::regrole
       FROM role JOIN pg_auth_members AS m ON m.member = role.oid
      UNION ALL
     SELECT rolname || ' may CREATE in schema ' || current_schema()
       FROM role WHERE has_schema_privilege(oid, current_schema(), 'CREATE')
      UNION ALL
     SELECT rolname || ' has ' || r.kind || ' on database ' || current_database()
       FROM role, unnest(ARRAY['CREATE', 'TEMPORARY']) AS r (kind)
      WHERE has_database_privilege(role.oid, current_database(), r.kind)
      UNION ALL
     SELECT rolname || ' owns ' || c.oid::regclass FROM role JOIN pg_class AS c ON c.relowner = role.oid
      UNION ALL
     SELECT rolname || ' may ' || r.kind || ' ' || c.oid::regclass
       FROM role, pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace,
            unnest(ARRAY['DELETE', 'TRUNCATE', 'TRIGGER']) AS r (kind)
      WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p') AND has_table_privilege(role.oid, c.oid, r.kind)
        AND NOT (rolname = 'pva_api' AND r.kind = 'DELETE' AND c.relname = ANY ($2::text[]))`,
    [ROLES, DELETED_FROM],
  );
  if (rows.length === 0) return;
  const excess = rows.map((row) => row.what).join("; ");
  throw new AppError("invalid_request", `Nothing was changed, because there are rights to take away first: ${excess}.`);
}
