import { ConfigError, readDatabaseUrl } from "../config.ts";
import { migrateDatabase } from "../db/migrate.ts";

// `npm run migrate`: brings the database of DATABASE_URL up to date and ends.
try {
  const applied = await migrateDatabase(readDatabaseUrl(process.env));
  console.log(applied.length === 0 ? "The database is up to date." : `Applied ${applied.join(", ")}.`);
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : error);
  process.exitCode = 1;
}
