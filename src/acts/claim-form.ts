import { AppError } from "../platform/api/errors.ts";
import type { Queryable, Transaction } from "../platform/db/pool.ts";
import { isLockTimeout } from "../platform/db/transaction.ts";
import { findSentForm, insertSentForm } from "./db/sent-forms.ts";

/** A command that a form may send. */
export interface FormCommand {
  command: string;
  arguments: Record<string, unknown>;
  /** The token of the form. The command runs at most once per token. Null for a command without a form. */
  formToken: string | null;
}

/** Thrown when the same form was sent before and its act is committed. */
export class SentBefore extends Error {
  /** The id of the entity that the first submission created. */
  readonly entityId: string;
  /** Whether both submissions had the same content. */
  readonly isSame: boolean;

  constructor({ entityId, isSame }: { entityId: string; isSame: boolean }) {
    super(`The form was sent before and has created ${entityId}.`);
    this.entityId = entityId;
    this.isSame = isSame;
  }
}

/** @throws SentBefore if a command with the same form token is committed. */
export async function assertNotSent(db: Queryable, { formToken, command, arguments: args }: FormCommand) {
  const first =
    formToken === null ? null : await findSentForm(db, { token: formToken, command, arguments: JSON.stringify(args) });
  if (first !== null) throw new SentBefore(first);
}

/**
 * Claims the command's form token for this transaction, which creates the entity. A second submission waits until the
 * first has ended.
 * @throws SentBefore; AppError `unavailable` when the first submission takes longer than the lock wait.
 */
export async function claimForm(tx: Transaction, audited: FormCommand, entityId: string): Promise<void> {
  const { formToken, command, arguments: args } = audited;
  if (formToken === null) return;
  const claimed = insertSentForm(tx, { token: formToken, command, arguments: JSON.stringify(args), entityId }).catch(
    (cause: unknown) => {
      if (!isLockTimeout(cause)) throw cause;
      const message = "This form was sent twice, and the first is still being worked on. Look at what it has done.";
      throw new AppError("unavailable", message, { cause });
    },
  );
  if (!(await claimed)) await assertNotSent(tx, audited);
}
