import { fileURLToPath } from "node:url";
import pg from "pg";
import { migrate } from "postgres-migrations";

const DIRECTORY = fileURLToPath(new URL("../../migrations", import.meta.url));

/**
 * Applies the migrations that a database has not seen yet, each in its own transaction, and returns their names. Runs started
 * at the same time wait for each other: the advisory lock is the session's, which is why this takes a connection of its own.
 * @throws Error with the database's own error as its cause, where there is one.
 */
export async function migrateDatabase(databaseUrl: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: "migrate" });
  // A connection that breaks tells whoever waits for an answer, too.
  client.on("error", () => undefined);
  await client.connect();
  // What is thrown below has only the words of it.
  let first: unknown;
  const listening: pg.Client = Object.create(client, {
    query: {
      value: async (statement: string | pg.QueryConfig) => {
        try {
          return await client.query(statement);
        } catch (error) {
          first ??= error;
          throw error;
        }
      },
    },
  });
  try {
    return (await migrate({ client: listening }, DIRECTORY)).map((migration) => migration.fileName);
  } catch (error) {
    throw first === undefined ? error : new Error((error as Error).message, { cause: first });
  } finally {
    await client.end();
  }
}
