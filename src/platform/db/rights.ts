import type pg from "pg";
import { loadMigrationFiles } from "postgres-migrations";
import { arrayOf, bigint, boolean, orNull, text } from "./columns.ts";
import type { Queryable } from "./queryable.ts";
import { MIGRATIONS } from "./schema.ts";
import { columnsOf, Statements } from "./statements.ts";

// Roles belong to the whole server, and hosting platforms give some of them rights on every new table. So default
// rights must not give access to the service's tables and functions: migrations take such rights away, and `db roles`
// grants what its roles need.

export const sql = new Statements(new URL("./rights.sql", import.meta.url));

const selectOwnObjects = sql.requiredRow(
  "select_own_objects",
  { relations: arrayOf(bigint), functions: arrayOf(bigint) },
  { relations: arrayOf(text), functions: arrayOf(text) },
);
/** The prefix of the names of this deployment's roles. Null before the first `db roles`. */
export const findGranteePrefix = sql.requiredValue("find_role_prefix", { prefix: orNull(text) });
const listDefaultRights = sql.rows(
  "list_default_rights",
  { grantee: text, revoke: text, grant: orNull(text) },
  { relations: arrayOf(bigint), functions: arrayOf(bigint), prefix: orNull(text) },
);
const compareWithGrants = sql.rows(
  "compare_rights",
  { role: text, may: text, object: text, isOwn: boolean, isMissing: boolean },
  {
    relations: arrayOf(bigint),
    functions: arrayOf(bigint),
    roles: arrayOf(text),
    privileges: arrayOf(text),
    objects: arrayOf(text),
    columns: arrayOf(text),
  },
);
/** The other databases of the server in which roles with these names own something or have rights. */
export const findDatabasesOfRoles = sql.rows("find_databases_of_roles", { name: text }, { names: arrayOf(text) });

/** A right that `db roles` grants. */
export interface Grant {
  role: string;
  privilege: string;
  /** The name of a table, sequence or function. */
  object: string;
  /** Empty for all columns, and for objects without columns. */
  column: string;
}

/** What a role may do beyond the grants, or what the grants allow and the role lacks. */
export interface RightsOfRole {
  role: string;
  /** Whether `db roles` makes this role. */
  isOwn: boolean;
  isMissing: boolean;
  /** A phrase to put after the role's name. */
  what: string;
}

/** The tables, sequences and functions that the migrations create. Excludes all other objects of the schema. */
async function findOwnObjects(db: Queryable, directory = MIGRATIONS) {
  const all = (await loadMigrationFiles(directory)).map((file) => file.sql).join("\n");
  const created = (kinds: string) =>
    Array.from(all.matchAll(new RegExp(`\\bCREATE ${kinds} (?:IF NOT EXISTS )?(\\w+)`, "gi")), ([, name = ""]) => name);
  return selectOwnObjects(db, {
    relations: created("(?:UNLOGGED )?(?:TABLE|SEQUENCE|VIEW)"),
    functions: created("(?:OR REPLACE )?FUNCTION"),
  });
}

/** Takes default rights on the migrations' objects from PUBLIC and from roles. Returns who had such rights. */
export async function takeDefaultRights(db: pg.ClientBase, directory?: string): Promise<string[]> {
  const prefix = await findGranteePrefix(db);
  const rights = await listDefaultRights(db, { ...(await findOwnObjects(db, directory)), prefix });
  const statements = rights.flatMap(({ revoke, grant }) => [grant ?? [], revoke].flat());
  if (statements.length > 0) await db.query(statements.join("; "));
  return [...new Set(rights.map(({ grantee }) => grantee))];
}

/** Compares the rights of every role of the server, except superusers and owners, with the grants. */
export async function compareRights(db: Queryable, grants: readonly Grant[]): Promise<RightsOfRole[]> {
  const {
    role: roles,
    privilege: privileges,
    object: objects,
    column: columns,
  } = columnsOf(grants, "role", "privilege", "object", "column");
  const found = await compareWithGrants(db, { ...(await findOwnObjects(db)), roles, privileges, objects, columns });
  const byRole = Object.groupBy(found, ({ role, isMissing }) => `${isMissing} ${role}`);
  return Object.values(byRole).flatMap((rights = []) => {
    const { role = "", isOwn = false, isMissing = false } = rights[0] ?? {};
    const list = describeRights(rights);
    return list.map((what) => ({ role, isOwn, isMissing, what: isMissing ? `lacks ${what}` : what }));
  });
}

/** Maximum number of objects that a sentence names. */
const NAMED_MAX = 5;

/** Phrases for the rights of one role. Objects with the same rights share a phrase. */
function describeRights(rights: readonly { may: string; object: string; isMissing: boolean }[]): string[] {
  const ofObject = Map.groupBy(rights, ({ object }) => object);
  const alike = Map.groupBy(
    ofObject.keys(),
    (object) =>
      ofObject
        .get(object)
        ?.map(({ may }) => may)
        .join(", ") ?? "",
  );
  return Array.from(alike, ([may, objects]) => {
    if (objects.includes("")) return may.replaceAll(", ", " and ");
    const more = objects.length - NAMED_MAX;
    const names = objects.slice(0, NAMED_MAX).join(", ");
    return `${rights[0]?.isMissing ? "" : "may "}${may} on ${names}${more > 0 ? ` and ${more} more` : ""}`;
  });
}
