import pg from "pg";
import { ConfigError } from "../config.ts";
import { AppError } from "../contract/errors.ts";
import { isDatabaseUnavailable, isLockTimeout } from "../db/transaction.ts";
import { EXIT, Interrupted, ServersUnavailable, UsageError } from "./exit-code.ts";

/** An error message for the user of voucherctl. */
export interface Explanation {
  /** One sentence. */
  message: string;
  /** What to do next, if anything. */
  hint?: string;
  exitCode: number;
}

const FIND_IDS = "voucherctl audit list shows what was created, with ids.";
const CHECK_URL = "Check DATABASE_URL.";

/** Explains the error that ended a command: a sentence, what to do next, and the exit code. */
export function explain(error: unknown): Explanation {
  if (error instanceof Interrupted) return { message: error.message, exitCode: error.exitCode };
  if (error instanceof UsageError) return { message: error.message, exitCode: EXIT.usage };
  if (error instanceof ServersUnavailable) return { message: error.message, exitCode: EXIT.unavailable };
  if (error instanceof AppError) {
    return { message: error.message, ...(error.code === "not_found" && { hint: FIND_IDS }), exitCode: EXIT.refused };
  }
  if (error instanceof ConfigError) {
    return { message: error.message, hint: "docs/configuration.md lists every variable.", exitCode: EXIT.config };
  }
  if (error instanceof pg.DatabaseError) return explainDatabaseError(error);
  if (isDatabaseUnavailable(error)) return unavailable((error as { code?: string }).code);
  return explainSystemError(error);
}

function explainDatabaseError(error: pg.DatabaseError): Explanation {
  if (isLockTimeout(error)) {
    return { message: "Another session is changing this right now.", hint: "Try again.", exitCode: EXIT.refused };
  }
  switch (error.code) {
    // foreign_key_violation
    case "23503":
      return { message: nameMissing(error), hint: FIND_IDS, exitCode: EXIT.refused };
    // undefined_table, undefined_column, undefined_function
    case "42P01":
    case "42703":
    case "42883":
      return {
        message: "The database has not been migrated to this version.",
        hint: "Run: npm run migrate",
        exitCode: EXIT.config,
      };
    // invalid_authorization_specification, invalid_password
    case "28000":
    case "28P01":
      return {
        message: `The database refuses this login: ${error.message}.`,
        hint: CHECK_URL,
        exitCode: EXIT.config,
      };
    // invalid_catalog_name
    case "3D000":
      return { message: `There is no such database: ${error.message}.`, hint: CHECK_URL, exitCode: EXIT.config };
    // insufficient_privilege
    case "42501":
      return {
        message: `The role of DATABASE_URL may not do this: ${error.message}.`,
        hint: "Connect as pva_admin or as the database owner. `voucherctl db roles` needs an owner with CREATEROLE.",
        exitCode: EXIT.config,
      };
  }
  if (isDatabaseUnavailable(error)) return unavailable(error.message);
  return { message: `The database refused: ${error.message}.`, exitCode: EXIT.refused };
}

function unavailable(reason: string | undefined): Explanation {
  return {
    message: `The database does not answer${reason === undefined ? "" : ` (${reason})`}.`,
    hint: "Is it running, and is DATABASE_URL right? Run voucherctl audit list to see whether anything was done.",
    exitCode: EXIT.unavailable,
  };
}

const NOUN: Record<string, string> = {
  organizations: "organization",
  brands: "brand",
  products: "product",
  batches: "batch",
};

/** Says which referenced row is missing. Postgres reports it only in `detail`; the pattern matches English messages only. */
function nameMissing({ detail = "", message }: pg.DatabaseError): string {
  const [, id, table = ""] = /=\((.*)\) is not present in table "(\w+)"/.exec(detail) ?? [];
  return id === undefined
    ? `One of the given ids does not exist: ${detail || message}`
    : `There is no ${NOUN[table] ?? table} ${id}.`;
}

const FILE_PROBLEM: Record<string, string> = {
  ENOENT: "there is no such file or directory",
  EACCES: "permission denied",
  EISDIR: "it is a directory",
  ENOTDIR: "part of its path is not a directory",
  ENOSPC: "the disk is full",
  EROFS: "the file system is read-only",
};

function explainSystemError(error: unknown): Explanation {
  const { code = "", path, message = String(error) } = error as NodeJS.ErrnoException;
  const problem = FILE_PROBLEM[code];
  if (path !== undefined && problem !== undefined) return { message: `${path}: ${problem}.`, exitCode: EXIT.refused };
  return { message, hint: "This is a bug in voucherctl. Please report it.", exitCode: EXIT.fault };
}
