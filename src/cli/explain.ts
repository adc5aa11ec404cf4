import pg from "pg";

/** A sentence for an operator about a failure that nobody translated closer to its cause. */
export function explain(error: unknown): string {
  if (error instanceof pg.DatabaseError) {
    switch (error.code) {
      case "23503":
        return `Something that was named does not exist: ${error.detail ?? error.message}`;
      case "42P01":
        return "The database has not been migrated. Run: npm run migrate";
      default:
        return `The database refused: ${error.message}`;
    }
  }
  return error instanceof Error ? error.message : String(error);
}
