import type pg from "pg";
import { z } from "zod";
import { InvalidStatement, verifyNote, verifyStatement } from "#client/statement.ts";
import { runAtOnce } from "../core/callers/bulkhead.ts";
import { type Statement, statementResponse } from "../core/redeem/api/statement.ts";
import { findCompleteUntil, findStatement } from "../core/redeem/db/redemptions.ts";
import { makeStatement, serveKept, statementFile } from "../core/redeem/make-statement.ts";
import { findVouchersEverywhere } from "./across-organizations.ts";

const NO_STATEMENT = "The file is no statement of a month.";

/** The fields by which a statement given as JSON is found in the service. */
const found = z.object({ organizationId: z.string(), month: z.string() });

/**
 * Compares a statement that the service once sent, as JSON or CSV, with the database's statement, and returns the
 * latter. JSON must be equal to it. Its hash, numbers, sums and times must be those of the redemptions in the CSV file
 * or, for JSON, in the database.
 * @throws InvalidStatement with the differences.
 */
export function verifyServedStatement(ctx: { pool: pg.Pool }, text: string): Promise<Statement> {
  return text.trimStart().startsWith("{") ? verifyJson(ctx, text) : verifyCsv(ctx, text);
}

/** Verifies a statement's note offline. @throws InvalidStatement, NotAccepted when the policy cannot be read. */
export async function verifySignedStatement(text: string, policy: string): Promise<Statement> {
  const { data: statement } = statementResponse.safeParse(readJson(text));
  if (statement === undefined) throw new InvalidStatement(NO_STATEMENT);
  await verifyNote(statement, policy);
  return statement;
}

async function verifyJson({ pool }: { pool: pg.Pool }, text: string): Promise<Statement> {
  // `sandbox` is no part of a statement. The service adds it to each response to a sandbox key.
  const { sandbox, ...given } = readJson(text);
  const statement = await findOrMake(pool, given.organizationId, given.month);
  const names = [...new Set([...Object.keys(statement), ...Object.keys(given)])];
  const valueIn = (one: object, name: string) => JSON.stringify(Object.entries(one).find(([key]) => key === name));
  const differing = names.filter((name) => valueIn(statement, name) !== valueIn(given, name));
  if (differing.length > 0) throw new InvalidStatement(`The service's statement differs in: ${differing.join(", ")}.`);
  const ctx = { pool, partnerCalls: runAtOnce };
  let csv = "";
  for await (const part of statementFile(ctx, statement, statement.month, await findCompleteUntil(pool)).parts)
    csv += part;
  await verifyStatement(statement, csv);
  return statement;
}

async function verifyCsv({ pool }: { pool: pg.Pool }, csv: string): Promise<Statement> {
  const [id = "", redeemedAt = ""] = csv.split("\n", 2)[1]?.split(",") ?? [];
  if (redeemedAt === "") throw new InvalidStatement("The file has no redemptions. Verify the statement as JSON.");
  const [voucher] = await findVouchersEverywhere({ pool }, { by: "id", value: id });
  if (voucher === undefined) throw new InvalidStatement(`There is no voucher ${id}.`);
  const statement = await findOrMake(pool, voucher.organizationId, redeemedAt.slice(0, 7));
  await verifyStatement(statement, csv);
  return statement;
}

/** Returns the stored final statement. If there is none, makes a statement from the redemptions. */
async function findOrMake(pool: pg.Pool, organizationId: string, month: string): Promise<Statement> {
  const kept = await findStatement(pool, { organizationId, month });
  if (kept !== null) return serveKept(kept);
  const ctx = { pool, partnerCalls: runAtOnce };
  return makeStatement(ctx, { organizationId }, month, await findCompleteUntil(pool));
}

function readJson(text: string) {
  try {
    return found.loose().parse(JSON.parse(text));
  } catch {
    throw new InvalidStatement(NO_STATEMENT);
  }
}
