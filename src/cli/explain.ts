import pg from "pg";
import { InvalidStatement } from "#client/statement.ts";
import { DamagedState, FileLocked } from "#tlog/durable-file.ts";
import { KeyNotMade } from "#tlog/key-file.ts";
import { SourceUnavailable } from "#tlog/log-source.ts";
import { NotAccepted } from "#tlog/policy.ts";
import { AppError } from "../platform/api/errors.ts";
import { ConfigError, UnusableFile } from "../platform/config.ts";
import { RefusedConnection } from "../platform/db/client.ts";
import { isUndefined, UnusableDatabase } from "../platform/db/schema.ts";
import { UnmetRequirement } from "../platform/db/session.ts";
import { isDatabaseAway, isForbidden, isLockTimeout } from "../platform/db/transaction.ts";
import { CommitUnknown, EXIT, Interrupted, ServersUnavailable, UsageError } from "./exit-code.ts";

/** An error message for the user of voucherctl. */
export interface Explanation {
  message: string;
  /** What to do next, if anything. */
  hint?: string;
  exitCode: number;
}

/** SQLSTATE. */
const FOREIGN_KEY_VIOLATION = "23503";
const FIND_IDS = "voucherctl audit list shows what was created, with ids.";

/** Explains the error that ended a command. */
export function explain(error: unknown): Explanation {
  if (error instanceof Interrupted) return { message: error.message, exitCode: error.exitCode };
  if (error instanceof UsageError) return { message: error.message, exitCode: EXIT.usage };
  if (error instanceof CommitUnknown) {
    const { hint, ...explanation } = explain(error.cause);
    return { ...explanation, hint: [hint, error.message].filter(Boolean).join(" ") };
  }
  if (error instanceof ServersUnavailable) return { message: error.message, exitCode: EXIT.unavailable };
  if (error instanceof AppError) {
    const exitCode = error.code === "unavailable" ? EXIT.unavailable : EXIT.refused;
    return { message: error.message, ...(error.code === "not_found" && { hint: FIND_IDS }), exitCode };
  }
  if (error instanceof SourceUnavailable) return { message: error.message, exitCode: EXIT.unavailable };
  if (error instanceof NotAccepted || error instanceof InvalidStatement)
    return { message: error.message, exitCode: EXIT.refused };
  if (error instanceof KeyNotMade || error instanceof FileLocked)
    return { message: error.message, exitCode: EXIT.refused };
  if (error instanceof UnusableFile || error instanceof DamagedState)
    return { message: error.message, exitCode: EXIT.config };
  if (error instanceof ConfigError)
    return misconfigured(error.message, "docs/configuration.md leads to every variable.");
  if (error instanceof UnmetRequirement) return { message: error.message, exitCode: EXIT.config };
  if (error instanceof RefusedConnection)
    return { message: error.message, exitCode: error.mayPass ? EXIT.unavailable : EXIT.config };
  if (error instanceof UnusableDatabase && error.state === "unavailable")
    return { message: error.message, exitCode: EXIT.unavailable };
  if (error instanceof pg.DatabaseError) return explainDatabaseError(error);
  if (isDatabaseAway(error)) return unavailable((error as { code?: string }).code);
  return explainSystemError(error);
}

function explainDatabaseError(error: pg.DatabaseError): Explanation {
  const { code, message } = error;
  if (isLockTimeout(error))
    return { message: "Another session is changing this right now.", hint: "Try again.", exitCode: EXIT.refused };
  if (code === FOREIGN_KEY_VIOLATION) return { message: nameMissing(error), hint: FIND_IDS, exitCode: EXIT.refused };
  if (isUndefined(error))
    return misconfigured("The database has not been migrated to this version.", "Run: npm run migrate");
  if (isForbidden(error)) {
    return misconfigured(
      `The role of DATABASE_URL may not do this: ${message}.`,
      "Connect as the role of voucherctl or as the owner. `voucherctl db roles` needs an owner with CREATEROLE.",
    );
  }
  if (isDatabaseAway(error)) return unavailable(message);
  return { message: `The database refused: ${message}.`, exitCode: EXIT.refused };
}

function misconfigured(message: string, hint: string): Explanation {
  return { message, hint, exitCode: EXIT.config };
}

function unavailable(reason: string | undefined): Explanation {
  return {
    message: `The database does not answer${reason === undefined ? "" : ` (${reason})`}.`,
    hint: "Is it running, and is DATABASE_URL right?",
    exitCode: EXIT.unavailable,
  };
}

const NOUN: Record<string, string> = {
  organizations: "organization",
  brands: "brand",
  products: "product",
  batches: "batch",
};

/** Finds the missing referenced row in `detail`, with a pattern of English messages. */
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
  // If a command reads a directory as a file, Node's error contains no path.
  if (problem !== undefined && (path !== undefined || code === "EISDIR"))
    return { message: `${path ?? "The file cannot be read"}: ${problem}.`, exitCode: EXIT.refused };
  if (code === "EADDRINUSE") return { message: "Another process listens on this port.", exitCode: EXIT.refused };
  return { message, hint: "This is a bug in voucherctl. Please report it.", exitCode: EXIT.fault };
}
