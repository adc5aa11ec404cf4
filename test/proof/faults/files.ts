import type { Ask, AskFor } from "./history.ts";
import type { Answer, Call } from "./http-call.ts";

// The files that callers read: the requests for them, and their content.

export const AS_CSV = { headers: { accept: "text/csv" } };
/** After every redemption of a run. */
const UNTIL = "2099-01-01T00:00:00Z";
/** The statuses of a proxy that gets no answer. */
const BY_PROXY = [502, 504];

export function isFile(ask: Ask): boolean {
  return "file" in ask && ask.file !== undefined;
}

/** How a person who signs in with the key reads the portal's file of redemptions. */
export function portalFile(url: string, { key, from }: AskFor<"list">): Pick<Call, "method" | "url" | "headers"> {
  const authorization = `Basic ${Buffer.from(`files:${key.secret}`).toString("base64")}`;
  const headers = { authorization, "accept-language": "en" };
  return { method: "GET", url: `${url}/portal/redemptions.csv?from=${from}&to=${UNTIL}`, headers };
}

/** The answer to a call for a file. A page of the portal that refuses a file contains no code. */
export function readFile(answer: Answer): Answer {
  if (BY_PROXY.includes(answer.status ?? 0)) return { ...answer, status: null, failure: "reset" };
  return { ...answer, body: answer.body ?? { code: answer.status === 503 ? "unavailable" : undefined } };
}

/** The redemptions in a file, in the form of a list without an end. */
export function listInFile(completeUntil: unknown, text: string) {
  const redemptions = rowsOf(text).map((row) => ({
    externalRef: row.externalRef,
    voucherInstanceId: row.voucherInstanceId,
    redeemCode: row.redeemCode,
    redeemedAt: row.redeemedAt ?? `${row.redeemedAtUtc?.replace(" ", "T")}Z`,
  }));
  return { redemptions, completeUntil, nextCursor: "the same call again" };
}

/** The rows of a CSV file by the names of their columns. The values contain no line ends. */
export function rowsOf(text: string): Record<string, string>[] {
  const [head = [], ...rows] = text
    .replace(/^\ufeff/, "")
    .split(/\r?\n/)
    .filter((line) => line !== "")
    .map((line) =>
      Array.from(line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g), ([, quoted, bare]) => quoted ?? bare ?? ""),
    );
  return rows.map((cells) => Object.fromEntries(head.map((name, place) => [name, cells[place] ?? ""])));
}
