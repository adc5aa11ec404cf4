import { isSignedBy, parseNote, parsePolicy } from "../../tlog/src/verify.ts";
import type { components } from "./api.ts";
import { sha256 } from "./history.ts";

/** The statement and its file differ, or the statement is not final. The message gives the reason. */
export class InvalidStatement extends Error {
  override name = "InvalidStatement";
}

type Statement = components["schemas"]["Statement"];

function demand(holds: boolean, message: string): void {
  if (!holds) throw new InvalidStatement(message);
}

/**
 * Compares a final statement with its CSV file, without the service. The file's redemptions must have the statement's
 * hash, number, sum, first time and last time, and the statement's lines must add up.
 * @param policy your own copy of the log's policy. With it, the log's signature of the statement is verified too.
 * @throws InvalidStatement
 */
export async function verifyStatement(statement: Statement, csv: string, policy?: string): Promise<void> {
  const rows = csv.slice(csv.indexOf("\n") + 1);
  demand(statement.final && statement.rowsHash !== null, "The statement is not final.");
  demand((await sha256(rows)) === statement.rowsHash, "The file is not the one whose hash the statement has.");
  const cells = rows
    .split("\r\n")
    .slice(0, -1)
    .map((line) => line.split(","));
  const cents = cells.map(([, , amount]) => Math.round(Number(amount) * 100));
  const times = cells.map(([, time]) => time);
  const sumOf = (numbers: readonly number[]) => numbers.reduce((sum, one) => sum + one, 0);
  const inCents = (usd: number) => Math.round(usd * 100);
  const { lines } = statement;
  const isCounted = [cents.length, sumOf(lines.map(({ redemptions }) => redemptions))].every(
    (number) => number === statement.redemptions,
  );
  demand(isCounted, "The number of redemptions differs.");
  const isSum = [sumOf(cents), sumOf(lines.map(({ amountUsd }) => inCents(amountUsd)))].every(
    (sum) => sum === inCents(statement.amountUsd),
  );
  demand(isSum, "The sum differs.");
  const areTimes =
    (times[0] ?? null) === statement.firstRedeemedAt && (times.at(-1) ?? null) === statement.lastRedeemedAt;
  demand(areTimes, "The first or last time differs.");
  if (policy !== undefined) await verifyNote(statement, policy);
}

/** Checks that a log of the policy has signed the statement's totals and hash. @throws InvalidStatement */
export async function verifyNote(statement: Statement, policy: string): Promise<void> {
  const note = parseNote(statement.note ?? "");
  if (note === null) throw new InvalidStatement("The statement has no note.");
  demand(note.text === statementText(statement), "The note is about another statement.");
  const keys = (await parsePolicy(policy)).logs.map(({ key }) => key);
  demand(await isSignedBy(note, keys), "The note is not signed by a log of the policy.");
}

/**
 * The text that the log signs. Its first line contains a space. The first line of a checkpoint is a key's name, which
 * cannot contain a space. So no text is both.
 */
export function statementText(statement: Omit<Statement, "note">): string {
  const { month, organizationId, redemptions, amountUsd, rowsHash } = statement;
  return `Voucher statement
month ${month}
organization ${organizationId}
redemptions ${redemptions}
amountUsd ${amountUsd.toFixed(2)}
rowsHash ${rowsHash}
`;
}
