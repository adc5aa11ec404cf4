import { readDatabaseUrl } from "../platform/config.ts";
import { migrateDatabase } from "../platform/db/migrate.ts";
import { EXIT } from "./exit-code.ts";
import { explainMigration } from "./explain-migration.ts";

// `npm run migrate`: applies the missing migrations to the database of DATABASE_URL. Exit statuses are the same as for
// voucherctl.
try {
  const applied = await migrateDatabase(readDatabaseUrl(process.env), {
    onWait: (message) => console.error(message),
    onRightsTaken: (grantees) => console.error(`Revoked rights that came by default from ${grantees.join(", ")}.`),
  });
  console.log(applied.length === 0 ? "The database is up to date." : `Applied ${applied.join(", ")}.`);
} catch (error) {
  const explanation = explainMigration(error);
  const lines = explanation === null ? [error] : [explanation.message, explanation.hint ?? []].flat();
  for (const line of lines) console.error(line);
  process.exitCode = explanation?.exitCode ?? EXIT.fault;
}
