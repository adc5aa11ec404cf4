#!/usr/bin/env node
import { parseArgs } from "node:util";
import {
  CHECKS,
  type CheckOptions,
  checkClient,
  describeChecks,
  ServiceUnavailable,
  UnusableOptions,
} from "./check-client.ts";
import { checkIssuer, ISSUER_CHECKS, type IssuerOptions } from "./check-issuer.ts";

const HELP = `Usage: partner-voucher-conformance --url ADDRESS --key pvt_… --client COMMAND --codes FILE

Runs your client for each step of an order, loses and delays responses, and says what the client gets wrong.

  --url ADDRESS     the service's address
  --key KEY         the sandbox's key, with both scopes
  --client COMMAND  runs your client for one step, which is JSON in the variable STEP
  --codes FILE      12 unused codes: one per line, or the CSV file of the operator
  --product ID      checks a back office instead, which issues vouchers of this product; without --codes
  --keep-vouchers   skips the last check, which expires the sandbox's vouchers
  --json            prints the results as one JSON object

Exit status: 0 all right, 1 the client does something wrong, 2 wrong usage, 69 the service does not answer.
`;

async function main(): Promise<number> {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const { values } = parseArgs({
    options: {
      url: text,
      key: text,
      client: text,
      codes: text,
      product: text,
      "keep-vouchers": flag,
      json: flag,
      help: flag,
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const { url, key, client, codes, product } = values;
  const needed = product === undefined ? { url, key, client, codes } : { url, key, client };
  for (const [name, value] of Object.entries(needed)) {
    if (value === undefined) throw new UnusableOptions(`--${name} is missing. --help lists the options.`);
  }
  const interrupted = new AbortController();
  process.once("SIGINT", () => interrupted.abort(new Error("Interrupted.")));
  let done = 0;
  const count = product === undefined ? CHECKS.length : ISSUER_CHECKS.length;
  const onResult = () => process.stderr.isTTY && process.stderr.write(`\rTried ${++done} of ${count} checks\r`);
  const options = { url, key, client, codes, product, keepVouchers: values["keep-vouchers"] ?? false };
  const checks =
    product === undefined
      ? await checkClient(options as CheckOptions, interrupted.signal, onResult)
      : await checkIssuer(options as IssuerOptions, interrupted.signal, onResult);
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
