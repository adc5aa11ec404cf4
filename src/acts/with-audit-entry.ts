import { hostname, userInfo } from "node:os";
import { isDeepStrictEqual } from "node:util";
import type pg from "pg";
import { AppError } from "../platform/api/errors.ts";
import type { Sentence } from "../platform/api/sentences.ts";
import type { RandomBytes } from "../platform/base32.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { inTransaction, violates, waitForLocks } from "../platform/db/transaction.ts";
import { claimForm, type FormCommand } from "./claim-form.ts";
import { type ActingBy, type Entity, insertAuditEntry, lockEntity, readEntityState } from "./db/audit-entries.ts";

/** Maximum wait of an administrative command for each lock. Limited because a person is waiting. Milliseconds. */
const LOCK_WAIT_MS = 10_000;

/** The command that an audit entry records, and the user who runs the command. */
export interface AuditedCommand extends FormCommand {
  osUser: string;
  host: string;
  by: ActingBy;
  /** Whether the command has begun a transaction that writes. Then its changes may be committed even if it fails. */
  mayHaveWritten: boolean;
}

/** The context of an administrative act. */
export interface AuditContext {
  pool: pg.Pool;
  randomBytes: RandomBytes;
  audited: AuditedCommand;
  /** Maximum wait for each lock, if it differs from that of commands. Milliseconds. */
  lockWaitMs?: number;
  /**
   * When the caller of a long act stops waiting, on the monotonic clock in milliseconds. The act ends then, and its
   * committed changes stay. Without this time, the act runs to its end.
   */
  endBy?: number;
  /** Lets other work of the process run after each part of a long act. */
  pause?(): Promise<void>;
}

/**
 * Describes a command that the operating system's current user runs. If `acting` is given, it names the user and the
 * host instead. `args` must contain no secret and no voucher code.
 */
export function auditedCommand(
  command: string,
  args: Record<string, unknown>,
  acting: {
    user?: string | undefined;
    host?: string | undefined;
    by?: ActingBy;
    formToken?: string | null;
  } = {},
): AuditedCommand {
  return {
    command,
    arguments: args,
    osUser: acting.user || userName(),
    host: acting.host || hostname(),
    by: acting.by ?? "command",
    formToken: acting.formToken ?? null,
    mayHaveWritten: false,
  };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run under a uid without a user name.
    return `uid ${process.getuid?.()}`;
  }
}

/** How long to wait for the next lock: at most as long as the caller waits. Whole milliseconds. */
export function lockWaitOf({ lockWaitMs = LOCK_WAIT_MS, endBy = Number.POSITIVE_INFINITY }: LockWaits): number {
  // Postgres reads 0 as no limit, so the minimum is 1.
  return Math.max(1, Math.floor(Math.min(lockWaitMs, endBy - performance.now())));
}

type LockWaits = Pick<AuditContext, "lockWaitMs" | "endBy">;

/** Thrown to roll back a command that changed nothing. Caught in this file. */
const NOTHING_CHANGED = Symbol("nothing changed");

/**
 * Runs one administrative command and inserts its audit entry, with the entity's state before and after, in one
 * transaction. If both states are equal, rolls everything back. Commands on the same entity run one at a time.
 * Administrative connections are read-only outside this function.
 * @throws SentBefore if the command's form was sent before.
 * @param unseen facts before and after the change that the entity's row does not show, for the audit entry. If its
 * `isCounted`, which runs after `work`, resolves to true, an earlier entry covers this command, and no entry is
 * inserted.
 */
export async function withAuditEntry<T>(
  ctx: Pick<AuditContext, "pool" | "audited"> & LockWaits,
  entity: Entity,
  work: (tx: Transaction) => Promise<T>,
  unseen?: {
    before: Record<string, unknown>;
    after: (result: T) => Record<string, unknown>;
    isCounted?: ((tx: Transaction) => Promise<boolean>) | null;
  },
): Promise<T> {
  let result: T | undefined;
  try {
    await inTransaction(ctx.pool, async (tx) => {
      await tx.query("SET TRANSACTION READ WRITE");
      ctx.audited.mayHaveWritten = true;
      await waitForLocks(tx, lockWaitOf(ctx));
      await claimForm(tx, ctx.audited, entity.id);
      await lockEntity(tx, entity);
      const before = merge(await readEntityState(tx, entity), unseen?.before);
      result = await work(tx);
      if (await unseen?.isCounted?.(tx)) return;
      const after = merge(await readEntityState(tx, entity), unseen?.after(result));
      if (isDeepStrictEqual(before, after)) throw NOTHING_CHANGED;
      await insertAuditEntry(tx, { ...ctx.audited, entity, before, after });
    });
  } catch (error) {
    if (error !== NOTHING_CHANGED) throw error;
  }
  return result as T;
}

function merge<State>(read: State | null, unseen: Record<string, unknown> | undefined): State | null {
  return unseen === undefined ? read : ({ ...read, ...unseen } as State);
}

/**
 * Waits for a command to finish.
 * @throws AppError `already_exists` with the given sentence when the command violates the constraint.
 */
export async function refuseIfTaken<T>(
  constraint: string,
  sentence: string | Sentence,
  command: Promise<T>,
): Promise<T> {
  return command.catch((cause) => {
    throw violates(cause, constraint) ? new AppError("already_exists", sentence, { cause }) : cause;
  });
}
