#!/usr/bin/env node
import { parseArgs } from "node:util";
import {
  CHECKS,
  type CheckOptions,
  checkClient,
  describeChecks,
  ServiceUnavailable,
  UsageError,
} from "./check-client.ts";

const HELP = `Usage: partner-voucher-conformance --url ADDRESS --key pvt_… --client COMMAND --codes FILE

Runs your client for each step of an order, loses and delays responses, and says what the client gets wrong.

  --url ADDRESS     the service's address
  --key KEY         the sandbox's key, with both scopes
  --client COMMAND  runs your client for one step, which is JSON in the variable STEP
  --codes FILE      12 unused codes: one per line, or the CSV file of the operator
  --keep-vouchers   skips the last check, which expires the sandbox's vouchers
  --json            prints the results as one JSON object

Exit status: 0 all right, 1 the client does something wrong, 2 wrong usage, 69 the service does not answer.
`;

async function main(): Promise<number> {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const { values } = parseArgs({
    options: { url: text, key: text, client: text, codes: text, "keep-vouchers": flag, json: flag, help: flag },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const { url, key, client, codes } = values;
  for (const [name, value] of Object.entries({ url, key, client, codes })) {
    if (value === undefined) throw new UsageError(`--${name} is missing. --help lists the options.`);
  }
  const interrupted = new AbortController();
  process.once("SIGINT", () => interrupted.abort(new Error("Interrupted.")));
  let done = 0;
  const checks = await checkClient(
    { url, key, client, codes, keepVouchers: values["keep-vouchers"] ?? false } as CheckOptions,
    interrupted.signal,
    () => process.stderr.isTTY && process.stderr.write(`\rTried ${++done} of ${CHECKS.length} checks\r`),
  );
  const passed = checks.every(({ result }) => result !== "wrong");
  process.stdout.write(`${values.json ? JSON.stringify({ passed, checks }) : describeChecks(checks)}\n`);
  return passed ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = error instanceof ServiceUnavailable ? 69 : 2;
}
