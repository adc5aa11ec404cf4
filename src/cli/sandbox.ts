import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { InvalidArgumentError } from "commander";
import { isSandboxKey, isWellFormedApiKey } from "../domain/api-keys.ts";
import { actionWithoutServers, type Interaction, type Noun } from "./command.ts";
import { EXIT, UsageError } from "./exit-code.ts";
import { pluralize } from "./format.ts";
import { paint } from "./paint.ts";
import { CHECKS, type CheckResult, runChecks, VOUCHERS_NEEDED } from "./sandbox/checks.ts";
import { openFaultyProxy } from "./sandbox/faulty-proxy.ts";
import { type SandboxService, sandboxService } from "./sandbox/sandbox-service.ts";

interface CheckOptions {
  key: string;
  url: string;
  client: string;
  codes: string;
  keepVouchers?: boolean;
}

export const sandbox: Noun = {
  name: "sandbox",
  description: "tests of a partner's client",
  addVerbs(noun) {
    actionWithoutServers<CheckOptions>(
      noun
        .command("check")
        .description("run a client against a sandbox, with faults, and say what it gets wrong")
        .requiredOption("--key <key>", "the sandbox's key, with both scopes")
        .requiredOption("--url <url>", "the service's address", address)
        .requiredOption("--client <command>", "runs the client for one step; see docs/sandbox.md")
        .requiredOption(
          "--codes <file>",
          `at least ${VOUCHERS_NEEDED} unused codes: one per line, or the CSV file from batch issue --out`,
        )
        .option("--keep-vouchers", "skip the last check, which expires the sandbox's vouchers")
        .addHelpText("after", "\nExit status: 0 all right, 1 the client does something wrong, 2 wrong usage."),
      ['sandbox check --key pvt_… --url https://vouchers.example.com --codes codes.csv --client "node my-client.mjs"'],
      check,
    );
  },
};

async function check(interaction: Interaction, options: CheckOptions): Promise<void> {
  const { key, url, client: command, keepVouchers = false } = options;
  const { signal } = interaction;
  assertSandboxKey(key);
  const service = sandboxService(url, key, signal);
  const codes = await chooseCodes(service, await readCodes(options.codes), options.codes);
  const proxy = await openFaultyProxy(url);
  const setup = { command, key, proxy, service, signal, codes, expireVouchers: !keepVouchers, run: newRun() };
  try {
    const progress = interaction.progress("Tried", "checks", CHECKS.length);
    let done = 0;
    const checks = await runChecks(setup, () => progress.advance(++done));
    const wrong = checks.filter(({ result }) => result === "wrong").length;
    interaction.print({ passed: wrong === 0, checks }, () =>
      [...checks.map(describeCheck), summarize(checks, wrong)].join("\n"),
    );
    if (wrong > 0) process.exitCode = EXIT.refused;
  } finally {
    await proxy.close();
  }
}

const STYLE = { right: "green", wrong: "red", "not tried": "yellow" } as const;

function describeCheck({ name, about, result, sentences }: CheckResult): string {
  return [
    `${paint(STYLE[result], result.padEnd(9))}  ${name}: ${about}`,
    ...sentences.map((sentence) => `           ${sentence}`),
  ].join("\n");
}

function summarize(checks: readonly CheckResult[], wrong: number): string {
  const tried = checks.filter(({ result }) => result !== "not tried").length;
  return wrong === 0
    ? `The client passed all ${pluralize(tried, "check")}.`
    : `The client failed ${wrong} of ${pluralize(tried, "check")}.`;
}

/** A random prefix of this run's order numbers, because a reference of an earlier run cannot redeem again. */
function newRun(): string {
  return `check-${randomBytes(4).toString("hex")}`;
}

/** Reads the codes of a file: one per line, or the second column of the CSV file that `batch issue --out` writes. */
async function readCodes(file: string): Promise<string[]> {
  const lines = (await readFile(file, "utf8")).split(/\r?\n/).filter((line) => line.trim() !== "");
  if (lines[0] !== "id,code,serial") return lines.map((line) => line.trim());
  return lines
    .slice(1)
    .map((line) => /^[^,]*,(?:"((?:[^"]|"")*)"|([^,]*)),/.exec(line))
    .map((row) => row?.[1]?.replaceAll('""', '"') ?? row?.[2] ?? "");
}

/** The first codes of unused vouchers, as many as the checks need. @throws UsageError */
async function chooseCodes(service: SandboxService, codes: readonly string[], file: string): Promise<string[]> {
  const unused: string[] = [];
  let expired = 0;
  for (const [index, code] of codes.entries()) {
    if (unused.length === VOUCHERS_NEEDED) break;
    const seen = await service.lookUp(code);
    if (seen === null) throw new UsageError(`${file}: code ${index + 1} is not a voucher of this key's organization.`);
    if (seen.sandbox !== true)
      throw new UsageError("The service does not mark these vouchers as a sandbox's. Nothing was tried.");
    if (seen.voucher.status === "Active" && seen.reservation === null) unused.push(code);
    if (seen.voucher.status === "Expired") expired += 1;
  }
  if (unused.length === VOUCHERS_NEEDED) return unused;
  const cause =
    expired === 0 ? "" : ` ${pluralize(expired, "voucher")} expired, as in every check without --keep-vouchers.`;
  throw new UsageError(
    `${file} has ${pluralize(unused.length, "unused code")} and ${VOUCHERS_NEEDED} are needed.${cause} Issue more: voucherctl batch issue --count 100 --out codes.csv …`,
  );
}

/** Protects live vouchers. @throws UsageError unless the key is a sandbox's. */
function assertSandboxKey(key: string): void {
  if (!isWellFormedApiKey(key))
    throw new UsageError("--key is not an API key. Copy it exactly as it was shown when it was created.");
  if (!isSandboxKey(key)) throw new UsageError("This key is live. Give a key of a sandbox, which begins with pvt_.");
}

function address(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "" || url.username !== "") {
    throw new InvalidArgumentError("Give an address like https://vouchers.example.com.");
  }
  return url.href.replace(/\/+$/, "");
}
