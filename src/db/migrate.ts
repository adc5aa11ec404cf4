import { fileURLToPath } from "node:url";
import pg from "pg";
import { migrate } from "postgres-migrations";

const DIRECTORY = fileURLToPath(new URL("../../migrations", import.meta.url));

/**
 * Applies the migrations that a database has not seen yet, each in its own transaction, and returns their names. Runs started
 * at the same time wait for each other: the advisory lock is the session's, which is why this takes a connection of its own.
 */
export async function migrateDatabase(databaseUrl: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: "migrate" });
  await client.connect();
  try {
    return (await migrate({ client }, DIRECTORY)).map((migration) => migration.fileName);
  } finally {
    await client.end();
  }
}
