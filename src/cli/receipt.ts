import { readFileSync } from "node:fs";
import { AppError } from "../contract/errors.ts";
import { NotAccepted, type Policy, parsePolicy } from "../domain/log/policy.ts";
import { parseProof, verifyProof } from "../domain/log/receipt.ts";
import { receiptOfRedemption } from "../services/log/read-receipt.ts";
import { action, actionWithoutServers, type Noun } from "./command.ts";
import { UsageError } from "./exit-code.ts";

/** Longest receipt, policy or checkpoint. Bytes. */
const FILE_MAX = 1_000_000;

export const receipt: Noun = {
  name: "receipt",
  description: "receipts of redemptions in the log",
  addVerbs(noun) {
    action<{ org: string }>(
      noun
        .command("get")
        .description("print the receipt of a redemption")
        .argument("<ref>", "the partner's externalRef")
        .requiredOption("--org <id>", "the organization"),
      ["receipt get order-4711 --org org_…"],
      async (ctx, { org }, ref) => {
        const text = await receiptOfRedemption(ctx.pool, org, ref ?? "");
        ctx.print({ receipt: text }, () => text.trimEnd());
      },
    );
    actionWithoutServers<{ policy: string }>(
      noun
        .command("verify")
        .description("verify a receipt offline, and print what it proves; exit status 1 when it is invalid")
        .argument("<file>", "the receipt")
        .requiredOption("--policy <file>", "your own copy of the policy: the log's key and its witnesses"),
      ["receipt verify order-4711.tlog-proof --policy policy"],
      async (ctx, { policy }, file = "") => {
        const text = readText(file);
        const proved = await runVerification(() => verifyProof(text, readPolicy(policy)));
        const payload = parseProof(text).extra?.toString() ?? "";
        const witnesses = proved.cosignatures.map(({ key, time }) => ({
          name: key.name,
          seenAt: new Date((time ?? 0) * 1_000).toISOString(),
        }));
        const { origin, index, size } = proved;
        ctx.print({ origin, index, size, recordHash: proved.recordHash.toString("hex"), witnesses, payload }, () =>
          [
            `Leaf ${index} of the log ${origin}, in its tree of ${size} leaves.`,
            ...witnesses.map(({ name, seenAt }) => `Seen by ${name} at ${seenAt}.`),
            payload,
          ].join("\n"),
        );
      },
    );
  },
};

/** Reads a policy file. @throws UsageError when it cannot be read or is invalid. */
export function readPolicy(file: string): Policy {
  try {
    return parsePolicy(readText(file));
  } catch (error) {
    if (error instanceof NotAccepted) throw new UsageError(`${file}: ${error.message}`);
    throw error;
  }
}

/** Runs a verification. @throws AppError `invalid_request` for a NotAccepted, and any other error of `verify` as it is. */
export async function runVerification<T>(verify: () => T | Promise<T>): Promise<T> {
  try {
    return await verify();
  } catch (error) {
    if (error instanceof NotAccepted) throw new AppError("invalid_request", error.message);
    throw error;
  }
}

/** Reads a file that the command line names. @throws UsageError when it cannot be read or is too long. */
export function readText(file: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`);
  }
  if (bytes.length > FILE_MAX) throw new UsageError(`${file} is too long.`);
  return bytes.toString();
}
