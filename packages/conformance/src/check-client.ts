import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { assertSandboxKey, parseAddress } from "./check-options.ts";
import { CHECKS, type CheckResult, runChecks, VOUCHERS_NEEDED } from "./checks.ts";
import { ServiceUnavailable, UnusableOptions } from "./errors.ts";
import { openFaultyProxy } from "./faulty-proxy.ts";
import { type SandboxService, sandboxService } from "./service.ts";

export { CHECKS, type CheckResult, ServiceUnavailable, UnusableOptions, VOUCHERS_NEEDED };

/** The options of a check. */
export interface CheckOptions {
  /** A sandbox key with both scopes. */
  key: string;
  /** The service's address. */
  url: string;
  /** The shell command that runs the client for one step. */
  client: string;
  /** A file of unused codes: one per line, or the CSV file that `voucherctl batch issue --out` writes. */
  codes: string;
  /** Whether to skip the last check, which expires the sandbox's vouchers. */
  keepVouchers?: boolean;
}

/**
 * Runs every check against a partner's client, and calls `onResult` after each check.
 * @throws UnusableOptions when the options, the key or the codes cannot be used. The client was not run in this case.
 * @throws ServiceUnavailable when the service does not answer; the signal's reason on abort.
 */
export async function checkClient(
  { key, url, client, codes, keepVouchers = false }: CheckOptions,
  signal: AbortSignal,
  onResult: (result: CheckResult) => void,
): Promise<CheckResult[]> {
  const address = parseAddress(url);
  assertSandboxKey(key);
  const service = sandboxService(address, key, signal);
  const chosen = await chooseCodes(service, await readCodes(codes), codes);
  const proxy = await openFaultyProxy(address);
  // The order numbers of this run begin with a random prefix, because a reference of an earlier run cannot redeem
  // again.
  const run = `check-${randomBytes(4).toString("hex")}`;
  try {
    return await runChecks(
      { command: client, key, proxy, service, signal, run, codes: chosen, expireVouchers: !keepVouchers },
      onResult,
    );
  } finally {
    await proxy.close();
  }
}

/** Describes the results as text. `paint` may colour the word of each result. */
export function describeChecks(
  checks: readonly CheckResult[],
  paint: (result: CheckResult["result"], word: string) => string = (_result, word) => word,
): string {
  const tried = checks.filter(({ result }) => result !== "not tried").length;
  const wrong = checks.filter(({ result }) => result === "wrong").length;
  return [
    ...checks.flatMap(({ name, about, result, sentences }) => [
      `${paint(result, result.padEnd(9))}  ${name}: ${about}`,
      ...sentences.map((sentence) => `           ${sentence}`),
    ]),
    wrong === 0
      ? `The client passed all ${count(tried, "check")}.`
      : `The client failed ${wrong} of ${count(tried, "check")}.`,
  ].join("\n");
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** Reads the codes of a file: one per line, or the second column of the CSV file that `batch issue --out` writes. */
async function readCodes(file: string): Promise<string[]> {
  const lines = (await readFile(file, "utf8"))
    .replace(/^\ufeff/, "")
    .split(/\r?\n/)
    .filter((line) => line.trim() !== "");
  if (lines[0] !== "id,code,serial") return lines.map((line) => line.trim());
  return lines
    .slice(1)
    .map((line) => /^[^,]*,(?:"((?:[^"]|"")*)"|([^,]*)),/.exec(line))
    .map((row) => row?.[1]?.replaceAll('""', '"') ?? row?.[2] ?? "");
}

/** Finds the codes of the first unused vouchers, as many as the checks need. @throws UnusableOptions */
async function chooseCodes(service: SandboxService, codes: readonly string[], file: string): Promise<string[]> {
  const unused: string[] = [];
  let expired = 0;
  for (const [index, code] of codes.entries()) {
    if (unused.length === VOUCHERS_NEEDED) break;
    const seen = await service.lookUp(code);
    if (seen === null)
      throw new UnusableOptions(`${file}: code ${index + 1} is not a voucher of this key's organization.`);
    if (seen.sandbox !== true)
      throw new UnusableOptions("The service does not mark these vouchers as a sandbox's. Nothing was tried.");
    if (seen.voucher.status === "Active" && seen.reservation === null) unused.push(code);
    if (seen.voucher.status === "Expired") expired += 1;
  }
  if (unused.length === VOUCHERS_NEEDED) return unused;
  const cause =
    expired === 0 ? "" : ` ${count(expired, "voucher")} expired, as in every check without --keep-vouchers.`;
  throw new UnusableOptions(
    `${file} has ${count(unused.length, "unused code")} and ${VOUCHERS_NEEDED} are needed.${cause} Ask the ` +
      "operator to issue more: voucherctl batch issue --count 100 --out codes.csv …",
  );
}
