import pg from "pg";
import { EXIT } from "./exit-code.ts";
import { type Explanation, explain } from "./explain.ts";

/** Something that a migration names is not there: a fault of the migration, not a database that waits for one. */
const NOT_THERE = ["42P01", "42703", "42883"];

const HINT: Partial<Record<number, string>> = {
  [EXIT.unavailable]:
    "Is it running, and is DATABASE_URL right? What was applied before stays; run this again for the rest.",
};

/** What ended `npm run migrate`, as voucherctl would say it; null for what neither a setting nor waiting can mend. */
export function explainMigration(error: unknown): Explanation | null {
  const { cause = error } = error as Error;
  const code = cause instanceof pg.DatabaseError ? (cause.code ?? "") : "";
  if (NOT_THERE.includes(code)) return null;
  const { message, hint, exitCode } = explain(cause);
  if (exitCode !== EXIT.config && exitCode !== EXIT.unavailable) return null;
  const own = code === "42501" ? "It takes the role that owns the database." : HINT[exitCode];
  return { message, hint: own ?? hint ?? "", exitCode };
}
