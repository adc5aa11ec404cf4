import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { loadMigrationFiles } from "postgres-migrations";
import { text } from "./columns.ts";
import type { Queryable } from "./queryable.ts";
import { Statements } from "./statements.ts";

export const sql = new Statements(new URL("./schema.sql", import.meta.url));

const selectAppliedMigrations = sql.rows("select_applied_migrations", { name: text, hash: text });

/** The folder of this release's migrations. */
export const MIGRATIONS = fileURLToPath(new URL("../../../migrations", import.meta.url));
/** The number of the last migration. Numbers have no gaps. */
export const SCHEMA = readdirSync(MIGRATIONS).filter((name) => name.endsWith(".sql")).length;

/** SQLSTATE undefined_table, undefined_column, undefined_function and invalid_schema_name. */
const UNDEFINED = ["42P01", "42703", "42883", "3F000"];

/**
 * Why a process cannot use its database. Anyone can read `state` and the message in the readiness response. The cause
 * is only for the log.
 */
export class UnusableDatabase extends Error {
  readonly state: "unavailable" | "copied" | "outdated";

  constructor(state: UnusableDatabase["state"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "UnusableDatabase";
    this.state = state;
  }
}

let migrations: ReturnType<typeof loadMigrationFiles> | undefined;

/**
 * Asserts that the database has every migration of this release with the same contents. It may also have migrations of
 * a newer release.
 * @throws UnusableDatabase, with the missing migrations in its cause.
 */
export async function assertMigrated(db: Queryable): Promise<void> {
  migrations ??= loadMigrationFiles(MIGRATIONS).catch((error) => {
    migrations = undefined;
    throw error;
  });
  const wanted = await migrations;
  const rows = await selectAppliedMigrations(db).catch(rejectAsOutdated);
  const applied = new Map(rows.map(({ name, hash }) => [name, hash]));
  const missing = wanted.filter(({ name, hash }) => applied.get(name) !== hash).map(({ fileName }) => fileName);
  if (missing.length > 0) throw outdated(new Error(`the database lacks ${missing.join(", ")}`));
}

function outdated(cause: Error): UnusableDatabase {
  return new UnusableDatabase("outdated", "The database lacks migrations of this release. Run: npm run migrate", {
    cause,
  });
}

/** Whether the database lacks a table, a column, a function or a schema. */
export function isUndefined(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && UNDEFINED.includes(error.code ?? "");
}

/** Throws {@link UnusableDatabase} if an error says that the database lacks something, else the error itself. */
export function rejectAsOutdated(error: unknown): never {
  throw isUndefined(error) ? outdated(error) : error;
}

/**
 * Refuses a read-only server, a copy of the database, and the database of another deployment.
 * @param ownId the deployment of the process, once it is known.
 * @throws UnusableDatabase
 */
export function assertOwnPrimary(
  found: { readOnly: boolean; isCopy: boolean; deploymentId: string },
  ownId: string | undefined,
): void {
  if (found.readOnly) {
    throw new UnusableDatabase(
      "unavailable",
      "DATABASE_URL leads to a standby or another read-only server. It must always lead to the primary.",
    );
  }
  if (found.isCopy) {
    throw new UnusableDatabase(
      "copied",
      "This database is a copy. To let it take over, stop every process that uses the original and run: " +
        "voucherctl db adopt",
    );
  }
  if (ownId !== undefined && ownId !== found.deploymentId) {
    throw new UnusableDatabase("copied", "This database was adopted after this process started. Restart the process.");
  }
}
