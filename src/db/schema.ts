import { fileURLToPath } from "node:url";
import pg from "pg";
import { loadMigrationFiles } from "postgres-migrations";
import { text } from "./columns.ts";
import type { Queryable } from "./pool.ts";
import { loadStatements, readRows } from "./statements.ts";

export const sql = loadStatements(new URL("./schema.sql", import.meta.url), {
  select_applied_migrations: { name: text, hash: text },
});

/** The folder of this release's migrations. */
export const MIGRATIONS = fileURLToPath(new URL("../../migrations", import.meta.url));

/** SQLSTATE undefined_table and undefined_column. */
const UNDEFINED = ["42P01", "42703"];

/** Why a process cannot use its database. Readiness reports `state`. */
export class UnusableDatabase extends Error {
  readonly state: "unavailable" | "copied" | "outdated";

  constructor(state: UnusableDatabase["state"], message: string) {
    super(message);
    this.name = "UnusableDatabase";
    this.state = state;
  }
}

let migrations: ReturnType<typeof loadMigrationFiles> | undefined;

/** The migrations of this release that the database lacks or has with other contents. It may have more, of a newer release. */
export async function findMissingMigrations(db: Queryable): Promise<string[]> {
  migrations ??= loadMigrationFiles(MIGRATIONS).catch((error) => {
    migrations = undefined;
    throw error;
  });
  const wanted = await migrations;
  const rows = await readRows(db, sql.select_applied_migrations, []).catch(rejectAsOutdated);
  const applied = new Map(rows.map(({ name, hash }) => [name, hash]));
  return wanted.filter(({ name, hash }) => applied.get(name) !== hash).map(({ fileName }) => fileName);
}

/** The error for a database that lacks migrations. */
export function outdated(missing: readonly string[]): UnusableDatabase {
  return new UnusableDatabase("outdated", `The database lacks ${missing.join(", ")}. Run: npm run migrate`);
}

/** Throws {@link UnusableDatabase} for an error about a missing table or column, and any other error unchanged. */
export function rejectAsOutdated(error: unknown): never {
  if (error instanceof pg.DatabaseError && UNDEFINED.includes(error.code ?? "")) {
    throw new UnusableDatabase("outdated", "The database lacks migrations. Run: npm run migrate");
  }
  throw error;
}
