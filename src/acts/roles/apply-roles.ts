import { readFileSync } from "node:fs";
import pg from "pg";
import { AppError } from "../../platform/api/errors.ts";
import type { RandomBytes } from "../../platform/base32.ts";
import type { Queryable, Transaction } from "../../platform/db/pool.ts";
import {
  compareRights,
  findDatabasesOfRoles,
  findGranteePrefix,
  type Grant,
  type RightsOfRole,
  takeDefaultRights,
} from "../../platform/db/rights.ts";
import { makeScramVerifier, SALT_BYTES } from "../../platform/scram-verifier.ts";

/**
 * The roles of the service's processes (api), of the log's sequencer (log), and of voucherctl (admin). They have only
 * the rights that their statements need. A role's name is the deployment's prefix followed by this word.
 */
export const GRANTEES = ["api", "log", "admin"] as const;
export type Grantee = (typeof GRANTEES)[number];

/** The prefix of a deployment that has not chosen one. `grants.sql` is written with it. */
export const DEFAULT_PREFIX = "pva";
export const granteeName = (prefix: string, grantee: Grantee): string => `${prefix}_${grantee}`;
const granteeNames = (prefix: string) => GRANTEES.map((grantee) => granteeName(prefix, grantee));

const read = (file: URL) => readFileSync(file, "utf8");
const REVOKES = read(new URL("./revokes.sql", import.meta.url));
/** All grants: those of `grants.sql`, and those of the wings (optional parts of the service). */
const readAll = (ofWings: readonly URL[]) =>
  [new URL("./grants.sql", import.meta.url), ...ofWings].map(read).join("\n");
/** A prefix contains only characters of an SQL name, so it needs no quotes. */
const withNames = (text: string, prefix: string) => text.replaceAll(`${DEFAULT_PREFIX}_`, `${prefix}_`);

/** The state of a role after {@link applyGrants}. */
export interface AppliedGrantee {
  name: string;
  /** Whether this run created it. */
  created: boolean;
  /** Whether the role can log in. If not, an operator must grant it to a role that can. */
  login: boolean;
  /** Whether this run changed the role's password. */
  passwordSet: boolean;
}

export interface AppliedGrantees {
  roles: AppliedGrantee[];
  /** Rights that this run revoked from PUBLIC. */
  takenFromPublic: string[];
  /** Sentences about what other roles of the server may do, although this deployment has not granted it. */
  others: string[];
}

/**
 * Creates the missing roles and gives each role its rights of `grants.sql` in this database. Takes these rights from
 * the roles of another prefix. Run it after each migration.
 * @param tx a transaction of the owner. If a role is missing or gets a password, the owner must be allowed to create
 * roles.
 * @param options the prefix of the roles' names, by default the deployment's current prefix; the grants of wings; and
 * passwords of visible ASCII characters. A role with a password can log in. Only the password's SCRAM verifier leaves
 * this process. A null password changes nothing.
 * @throws AppError `invalid_request` when the roles have rights in another database, or more rights than `grants.sql`
 * gives.
 */
export async function applyGrants(
  tx: Transaction,
  randomBytes: RandomBytes,
  options: { prefix: string | null; passwords: Record<Grantee, string | null>; grants: readonly URL[] },
): Promise<AppliedGrantees> {
  const before = await findGranteePrefix(tx);
  const prefix = options.prefix ?? before ?? DEFAULT_PREFIX;
  const grants = readAll(options.grants);
  await refuseRolesOfOthers(tx, prefix);
  const takenFromPublic = await readRightsOfPublic(tx);
  const roles: AppliedGrantee[] = [];
  for (const grantee of GRANTEES)
    roles.push(await applyGrantee(tx, randomBytes, granteeName(prefix, grantee), options.passwords[grantee]));
  // Runs first, because it also grants the roles what they had through PUBLIC. The next statements revoke these grants.
  await takeDefaultRights(tx);
  if (before !== null && before !== prefix) await tx.query(withNames(REVOKES, before));
  await tx.query(withNames(REVOKES + grants, prefix));
  const others = await findExcess(tx, readGrants(grants, prefix));
  return { roles, takenFromPublic, others };
}

/** Roles belong to the server. A role with rights in another database serves another deployment. @throws AppError */
async function refuseRolesOfOthers(tx: Transaction, prefix: string): Promise<void> {
  const databases = (await findDatabasesOfRoles(tx, granteeNames(prefix))).map(({ name }) => name);
  if (databases.length === 0) return;
  throw new AppError(
    "invalid_request",
    `Nothing was changed, because the roles ${granteeNames(prefix).join(", ")} have rights in other databases of this \
server: ${databases.join(", ")}. Choose other names for this deployment: voucherctl db roles --prefix NAME`,
  );
}

async function applyGrantee(
  tx: Transaction,
  randomBytes: RandomBytes,
  name: string,
  password: string | null,
): Promise<AppliedGrantee> {
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
 * Finds what other roles may do.
 * @throws AppError when a role of the deployment has rights that the grants do not give, for example by an attribute, a
 * membership, ownership, or PUBLIC.
 */
async function findExcess(tx: Transaction, grants: readonly Grant[]): Promise<string[]> {
  const found = await compareRights(tx, grants);
  const own = found.filter(({ isOwn }) => isOwn).map(describeRights);
  if (own.length === 0) return found.map((rights) => `${describeRights(rights)}.`);
  throw new AppError(
    "invalid_request",
    `Nothing was changed, because there are rights to take away first: ${own.join("; ")}.`,
  );
}

const describeRights = ({ role, what }: RightsOfRole) => `${role} ${what}`;

/** The rights that grants give on tables, columns, sequences and functions. */
function readGrants(grants: string, prefix: string): Grant[] {
  const statements = withNames(grants, prefix).matchAll(
    /^GRANT ([^;]+?)\s+ON (?:FUNCTION |SEQUENCE )?([^;]+?)\s+TO ([^;]+);/gm,
  );
  const list = (text = "") => text.split(/,\s*(?![^(]*\))/);
  return Array.from(statements, ([, privileges, objects, roles]) =>
    list(roles).flatMap((role) =>
      list(objects).flatMap((object) =>
        list(privileges).flatMap((privilege) => {
          const [, kind = "", columns = ""] = /^(\w+)(?: \(([^)]+)\))?$/.exec(privilege) ?? [];
          const name = object.replace(/\(.*/s, "");
          return list(columns).map((column) => ({ role, privilege: kind, object: name, column }));
        }),
      ),
    ),
  ).flat();
}

/** For operators: rights of other roles that the deployment has not granted, and rights that its own roles lack. */
export async function findRightsRisks(
  db: Queryable,
  grantsOfWings: readonly URL[],
): Promise<{ code: string; message: string }[]> {
  const prefix = (await findGranteePrefix(db)) ?? DEFAULT_PREFIX;
  const found = await compareRights(db, readGrants(readAll(grantsOfWings), prefix));
  const byDuty = Object.groupBy(found, ({ isOwn }) => (isOwn ? "own" : "other"));
  const sentences = {
    own: "The roles of the service have other rights than it grants. As the owner, run voucherctl db roles:",
    other:
      "Other roles of the server have rights on tables or functions of the service. As the owner, run npm run " +
      "migrate, which takes away what was given by default, and revoke what remains:",
  };
  return Object.entries(byDuty).map(([duty, rights]) => ({
    code: `rights_of_${duty}_roles`,
    message: `${sentences[duty as keyof typeof sentences]} ${rights.map(describeRights).join("; ")}.`,
  }));
}
