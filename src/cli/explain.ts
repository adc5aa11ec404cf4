import pg from "pg";
import { ConfigError } from "../config.ts";
import { isDatabaseUnavailable, isLockTimeout } from "../db/transaction.ts";
import { AppError } from "../domain/errors.ts";
import { EXIT, Interrupted, ServersUnavailable, UsageError } from "./exit-code.ts";

/** What a failure is to the person at the keyboard. */
export interface Explanation {
  /** One sentence. */
  message: string;
  /** What to do next, where there is something. */
  hint?: string;
  exitCode: number;
}

const WHERE_IDS_ARE = "voucherctl audit list shows what was made, with its ids.";

/** A sentence for an operator about whatever ended a command, what to do next, and the exit code. */
export function explain(error: unknown): Explanation {
  if (error instanceof Interrupted) return { message: error.message, exitCode: error.exitCode };
  if (error instanceof UsageError) return { message: error.message, exitCode: EXIT.usage };
  if (error instanceof ServersUnavailable) return { message: error.message, exitCode: EXIT.unavailable };
  if (error instanceof AppError) return explainRefusal(error);
  if (error instanceof ConfigError) {
    return { message: error.message, hint: "The README lists every variable.", exitCode: EXIT.config };
  }
  if (error instanceof pg.DatabaseError) return explainDatabaseError(error);
  if (isDatabaseUnavailable(error)) return databaseAway((error as { code?: string }).code);
  return explainSystemError(error);
}

function explainRefusal({ code, message }: AppError): Explanation {
  const hint = code === "not_found" ? WHERE_IDS_ARE : undefined;
  return { message, ...(hint && { hint }), exitCode: EXIT.refused };
}

function explainDatabaseError(error: pg.DatabaseError): Explanation {
  if (isLockTimeout(error)) {
    return { message: "Somebody else is changing this right now.", hint: "Try again.", exitCode: EXIT.refused };
  }
  switch (error.code) {
    case "23503":
      return { message: nameMissing(error), hint: WHERE_IDS_ARE, exitCode: EXIT.refused };
    case "42P01":
    case "42703":
    case "42883":
      return {
        message: "The database has not been migrated to this version.",
        hint: "Run: npm run migrate",
        exitCode: EXIT.config,
      };
    case "28000":
    case "28P01":
      return {
        message: `The database lets nobody in like this: ${error.message}.`,
        hint: CHECK_URL,
        exitCode: EXIT.config,
      };
    case "3D000":
      return { message: `There is no such database: ${error.message}.`, hint: CHECK_URL, exitCode: EXIT.config };
    case "42501":
      return {
        message: `The role of DATABASE_URL may not do this: ${error.message}.`,
        hint: "It takes pva_admin or the owner of the database, and for db roles an owner who may create roles.",
        exitCode: EXIT.config,
      };
  }
  if (isDatabaseUnavailable(error)) return databaseAway(error.message);
  return { message: `The database refused: ${error.message}.`, exitCode: EXIT.refused };
}

const CHECK_URL = "Check DATABASE_URL.";

function databaseAway(reason: string | undefined): Explanation {
  return {
    message: `The database does not answer${reason === undefined ? "" : ` (${reason})`}.`,
    hint: "Is it running, and is DATABASE_URL right? Whether anything was done, voucherctl audit list tells.",
    exitCode: EXIT.unavailable,
  };
}

const NOUN: Record<string, string> = {
  organizations: "organization",
  brands: "brand",
  products: "product",
  batches: "batch",
};

/** Says what a foreign key found missing; Postgres tells it in `detail`, in the server's language. */
function nameMissing({ detail = "", message }: pg.DatabaseError): string {
  const [, id, table = ""] = /=\((.*)\) is not present in table "(\w+)"/.exec(detail) ?? [];
  return id === undefined
    ? `Something that was named does not exist: ${detail || message}`
    : `There is no ${NOUN[table] ?? table} ${id}.`;
}

const FILE_PROBLEM: Record<string, string> = {
  ENOENT: "there is no such file or directory",
  EACCES: "you may not use it",
  EISDIR: "it is a directory",
  ENOTDIR: "part of its path is no directory",
  ENOSPC: "the disk is full",
  EROFS: "it is on a disk that cannot be written",
};

function explainSystemError(error: unknown): Explanation {
  const { code, path, message = String(error) } = error as NodeJS.ErrnoException;
  const problem = FILE_PROBLEM[code ?? ""];
  if (path !== undefined && problem !== undefined) {
    return { message: `${path}: ${problem}.`, exitCode: EXIT.refused };
  }
  return { message, hint: "This is a fault of voucherctl. Please report it.", exitCode: EXIT.fault };
}
