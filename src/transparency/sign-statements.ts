import type pg from "pg";
import { statementText } from "#client/statement.ts";
import { type SignerKey, signNote } from "#tlog/note.ts";
import { keepNote, selectStatementsToSign } from "./db/statement-notes.ts";

/**
 * Signs final statements that have no signed note yet. If another process signs a statement at the same time, the first
 * note stays. The signed text contains no names, so the same redemptions give the same text after a restore.
 */
export async function signStatements(pool: pg.Pool, keys: readonly SignerKey[]): Promise<void> {
  for (const { organizationId, month, content } of await selectStatementsToSign(pool)) {
    await keepNote(pool, { organizationId, month, note: await signNote(keys, statementText(JSON.parse(content))) });
  }
}
