import { LocksUnavailable, MigrationsChanged } from "../platform/db/migrate.ts";
import { isUndefined, UnusableDatabase } from "../platform/db/schema.ts";
import { isForbidden } from "../platform/db/transaction.ts";
import { EXIT } from "./exit-code.ts";
import { type Explanation, explain } from "./explain.ts";

const HINT: Partial<Record<number, string>> = {
  [EXIT.unavailable]:
    "Is it running, and is DATABASE_URL right? Migrations that were applied stay applied. Run this again for the rest.",
};

const LOCKED_HINT =
  "Wait for that session or end it. Migrations that were applied stay applied. Run this again for the rest.";

/** Explains the error that ended `npm run migrate`. Null for a bug, which no setting and no retry can fix. */
export function explainMigration(error: unknown): Explanation | null {
  if (error instanceof MigrationsChanged) {
    const [message = "", hint = ""] = error.message.split("\n");
    return { message, hint, exitCode: EXIT.config };
  }
  const cause = error instanceof UnusableDatabase ? error : ((error as Error).cause ?? error);
  if (cause instanceof LocksUnavailable)
    return { message: cause.message, hint: LOCKED_HINT, exitCode: EXIT.unavailable };
  // Elsewhere, an undefined object, such as a table, means that migrations are missing. In a migration, it is a bug.
  if (isUndefined(cause)) return null;
  const { message, hint, exitCode } = explain(cause);
  if (exitCode !== EXIT.config && exitCode !== EXIT.unavailable) return null;
  if (cause instanceof UnusableDatabase) return { message, exitCode };
  const own = isForbidden(cause) ? "Use the role that owns the database." : HINT[exitCode];
  return { message, hint: own ?? hint ?? "", exitCode };
}
