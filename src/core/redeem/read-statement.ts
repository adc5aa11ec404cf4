import type { RowFile } from "../../platform/http/send-file.ts";
import type { Requester } from "../callers/bulkhead.ts";
import { type Confirming, readConfirmed } from "../commit/confirm-reads.ts";
import type { Statement } from "./api/statement.ts";
import type { CompleteUntil } from "./complete-until.ts";
import { findStatement, keepStatement } from "./db/redemptions.ts";
import { makeStatement, type Reads, rangeOf, serveKept, statementFile } from "./make-statement.ts";

interface Deps extends Reads, Confirming {
  completeUntil: CompleteUntil;
}

/**
 * Reads an organization's statement of a month. The first final statement is stored, and every later call gets it. If
 * the service has a log, a statement is final only after the log has signed it. Works without Redis.
 * @throws AppError `invalid_request` if the text is not a month, `unavailable`, `overloaded`.
 */
export async function readStatement(
  ctx: Deps,
  requester: Requester<"organization">,
  month: string,
): Promise<Statement> {
  const { pool, partnerCalls } = ctx;
  const { organizationId } = requester;
  const { to } = rangeOf(month);
  const completeUntil = await ctx.completeUntil(requester);
  const find = () =>
    readConfirmed(ctx, () => partnerCalls(requester, () => findStatement(pool, { organizationId, month })));
  const kept = to <= completeUntil ? await find() : null;
  if (kept !== null) return serveKept(kept);
  const statement = await makeStatement(ctx, requester, month, completeUntil);
  if (!statement.final) return statement;
  const content = JSON.stringify(statement);
  await partnerCalls(requester, () => keepStatement(pool, { organizationId, month, content }));
  // If a failover has lost the stored statement, serves the statement just made as not yet signed.
  return serveKept((await find()) ?? { content, note: null, noteDue: true });
}

/**
 * The rows of a month's redemptions as CSV. `rowsHash` of the statement is their hash.
 * @throws AppError `invalid_request` if the text is not a month.
 */
export async function readStatementFile(
  ctx: Deps,
  requester: Requester<"organization">,
  month: string,
): Promise<RowFile> {
  return statementFile(ctx, requester, month, await ctx.completeUntil(requester));
}
