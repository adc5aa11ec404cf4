import { type Policy, PolicyNotRead, parsePolicy } from "#tlog/policy.ts";
import { reportReceipt } from "#tlog/report.ts";
import { type Noun, verb, verbWithoutServers } from "../../cli/command.ts";
import { UsageError } from "../../cli/exit-code.ts";
import { ORG, required } from "../../cli/options.ts";
import { readText } from "../../cli/read-text.ts";
import { receiptOfRedemption } from "../read-receipt.ts";

/** Maximum length of a receipt, policy or checkpoint. Bytes. */
export const FILE_MAX = 1_000_000;

export const receipt: Noun = {
  name: "receipt",
  description: "receipts of redemptions in the log",
  verbs: {
    get: verb({
      description: "print the receipt of a redemption",
      argument: ["<ref>", "the partner's externalRef"],
      options: { org: ORG },
      examples: ["order-4711 --org org_…"],
      async run(ctx, { org }, ref) {
        const text = await receiptOfRedemption(ctx.pool, org, ref);
        ctx.print({ receipt: text }, () => text.trimEnd());
      },
    }),
    verify: verbWithoutServers({
      description: "verify a receipt offline, and print what it proves; exit status 1 when it is invalid",
      argument: ["<file>", "the receipt"],
      options: { policy: required("<file>", "your own copy of the policy: the log's key and its witnesses") },
      examples: ["order-4711.tlog-proof --policy policy"],
      async run(ctx, { policy }, file) {
        const reported = reportReceipt(readText(file, FILE_MAX), readText(policy, FILE_MAX));
        const [fields, text] = await withPolicy(policy, reported);
        ctx.print(fields, () => text);
      },
    }),
  },
};

/** Reads a policy file. @throws UsageError when it cannot be read or is invalid. */
export function readPolicy(file: string): Promise<Policy> {
  return withPolicy(file, parsePolicy(readText(file, FILE_MAX)));
}

function withPolicy<T>(file: string, read: Promise<T>): Promise<T> {
  return read.catch((error) => {
    throw error instanceof PolicyNotRead ? new UsageError(`${file}: ${error.message}`) : error;
  });
}
