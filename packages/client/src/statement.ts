import type { components } from "./api.ts";
import { sha256 } from "./history.ts";

/** The statement and its file differ, or the statement is not final. The message says how. */
export class InvalidStatement extends Error {
  override name = "InvalidStatement";
}

/**
 * Compares a final statement with its CSV file, without the service: the hash, the number, the sum and the first and
 * last time of the file's redemptions, and the sums of the statement's lines. @throws InvalidStatement
 */
export async function verifyStatement(statement: components["schemas"]["Statement"], csv: string): Promise<void> {
  const demand = (holds: boolean, message: string) => {
    if (!holds) throw new InvalidStatement(message);
  };
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
}
