import { createHash } from "node:crypto";
import type pg from "pg";
import { invalidField } from "../../platform/api/errors.ts";
import type { RowFile } from "../../platform/http/send-file.ts";
import type { Bulkhead, Requester } from "../callers/bulkhead.ts";
import { STATEMENT_COLUMNS, type Statement } from "./api/statement.ts";
import {
  type KeptStatement,
  type RedemptionSum,
  type StatementRow,
  selectStatementRows,
  sumRedemptions,
} from "./db/redemptions.ts";
import { readPages } from "./list-redemptions.ts";

/** The dependencies of functions that read redemptions. */
export interface Reads {
  pool: pg.Pool;
  partnerCalls: Bulkhead<"organization">;
}

/**
 * Adds up a month's redemptions with the current names, and does not store the result. The statement is final if the
 * redemptions of the month are complete.
 * @throws AppError `invalid_request` if the text is not a month, `overloaded`.
 */
export async function makeStatement(
  ctx: Reads,
  requester: Requester<"organization">,
  month: string,
  completeUntil: Date,
): Promise<Statement> {
  const { from, to } = rangeOf(month);
  const { organizationId } = requester;
  const isFinal = to <= completeUntil;
  const until = isFinal ? to : completeUntil;
  const sums = await ctx.partnerCalls(requester, () =>
    sumRedemptions(ctx.pool, { organizationId, bounds: [from, until] }),
  );
  const statement = addUp(sums, { organizationId, month, final: isFinal, completeUntil: until.toISOString() });
  if (!isFinal) return statement;
  const hash = createHash("sha256");
  for await (const lines of readLines(ctx, requester, from, to)) hash.update(lines);
  return { ...statement, rowsHash: hash.digest("hex") };
}

/** A stored statement as readers get it. If the service has a log, it is final only once the log has signed it. */
export function serveKept({ content, note, noteDue }: KeptStatement): Statement {
  const statement: Statement = JSON.parse(content);
  return note === null && noteDue ? { ...statement, final: false, rowsHash: null } : { ...statement, note };
}

/**
 * The redemptions of a month as CSV, up to `completeUntil`. No redemption before that time can still be added.
 * @throws AppError `invalid_request` if the text is not a month.
 */
export function statementFile(
  ctx: Reads,
  requester: Requester<"organization">,
  month: string,
  completeUntil: Date,
): RowFile {
  const { from, to } = rangeOf(month);
  const { organizationId } = requester;
  const until = to <= completeUntil ? to : completeUntil;
  async function* parts() {
    yield STATEMENT_COLUMNS;
    yield* readLines(ctx, requester, from, until);
  }
  const headers = {
    "Complete-Until": until.toISOString(),
    "Content-Disposition": `attachment; filename=statement-${organizationId}-${month}.csv`,
  };
  return { headers, parts: parts() };
}

/**
 * The first moment of a month, UTC, and the first moment of the next month.
 * @throws AppError `invalid_request` if the text is not a month.
 */
export function rangeOf(month: string): { from: Date; to: Date } {
  if (!/^2\d{3}-(0[1-9]|1[0-2])$/.test(month)) throw invalidField("month", "noMonth");
  const from = new Date(`${month}-01T00:00:00Z`);
  const to = new Date(from);
  to.setUTCMonth(to.getUTCMonth() + 1);
  return { from, to };
}

/** The lines of a statement's file, one page at a time. */
async function* readLines(
  ctx: Reads,
  requester: Requester<"organization">,
  from: Date,
  until: Date,
): AsyncGenerator<string> {
  for await (const page of readPages(ctx, requester, selectStatementRows, from, until))
    yield page.map(writeLine).join("");
}

function writeLine({ voucherId, redeemedAt, priceUsd, recordHash }: StatementRow): string {
  return `${[voucherId, redeemedAt.toISOString(), priceUsd.toFixed(2), recordHash].join()}\r\n`;
}

type Head = Pick<Statement, "organizationId" | "month" | "final" | "completeUntil">;

/** Makes a statement from the sums of products and keys. Its `rowsHash` is null. */
function addUp(sums: readonly RedemptionSum[], head: Head): Statement {
  const total = (of: readonly RedemptionSum[]) => ({
    redemptions: of.reduce((all, { redemptions }) => all + redemptions, 0),
    amountUsd: of.reduce((all, { cents }) => all + cents, 0) / 100,
  });
  const times = (pick: (...ms: number[]) => number, name: "firstAt" | "lastAt") =>
    sums.length === 0 ? null : new Date(pick(...sums.map((sum) => sum[name].getTime()))).toISOString();
  const lines = sums.map((sum) => {
    const { brand, productId, productName, productKey, keyId, keyLabel } = sum;
    return { brand, productId, productName, productKey, keyId, keyLabel, ...total([sum]) };
  });
  const nameOf = ({ brand, productName, productId, keyLabel, keyId }: (typeof lines)[number]) =>
    [brand, productName, productId, keyLabel ?? "", keyId].join("\0");
  return {
    ...head,
    ...total(sums),
    firstRedeemedAt: times(Math.min, "firstAt"),
    lastRedeemedAt: times(Math.max, "lastAt"),
    lines: lines.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1)),
    rowsHash: null,
    note: null,
  };
}
