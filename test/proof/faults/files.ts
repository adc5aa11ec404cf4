import type { Ask, AskFor } from "./history.ts";
import type { Answer, Call } from "./http-call.ts";

export const AS_CSV = { headers: { accept: "text/csv" } };
/** A time after every redemption of a run. */
const UNTIL = "2099-01-01T00:00:00Z";
/** The statuses with which a proxy reports that it got no answer. */
const BY_PROXY = [502, 504];

export function isFile(ask: Ask): boolean {
  return "file" in ask && ask.file !== undefined;
}

/** Makes the request with which a person who has signed in with the key reads the portal's file of redemptions. */
export function portalFile(url: string, { key, from }: AskFor<"list">): Pick<Call, "method" | "url" | "headers"> {
  const authorization = `Basic ${Buffer.from(`files:${key.secret}`).toString("base64")}`;
  const headers = { authorization, "accept-language": "en" };
  return { method: "GET", url: `${url}/portal/redemptions.csv?from=${from}&to=${UNTIL}`, headers };
}

/** Reads a file's answer. A proxy's error counts as a lost connection, and a page with 503 as `unavailable`. */
export function readFile(answer: Answer): Answer {
  if (BY_PROXY.includes(answer.status ?? 0)) return { ...answer, status: null, failure: "reset" };
  return { ...answer, body: answer.body ?? { code: answer.status === 503 ? "unavailable" : undefined } };
}

/** Reads the redemptions in a file, in the form of a list's page. Its cursor stands for the same call again. */
export function listInFile(completeUntil: unknown, text: string) {
  const redemptions = rowsOf(text).map((row) => ({
    externalRef: row.externalRef,
    voucherInstanceId: row.voucherInstanceId,
    redeemCode: row.redeemCode,
    redeemedAt: row.redeemedAt ?? `${row.redeemedAtUtc?.replace(" ", "T")}Z`,
  }));
  return { redemptions, completeUntil, nextCursor: "the same call again" };
}

/** Reads the rows of a CSV file, each by column. No value contains a line break. */
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
