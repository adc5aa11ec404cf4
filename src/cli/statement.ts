import { verifyServedStatement, verifySignedStatement } from "../acts/verify-statement.ts";
import type { Statement } from "../core/redeem/api/statement.ts";
import { confirmed } from "../platform/db/durability.ts";
import { type Interaction, type Noun, verbWithoutServers, withServers } from "./command.ts";
import { pluralize } from "./format.ts";
import { option } from "./options.ts";
import { readText } from "./read-text.ts";

/** Maximum size of a file: as much as a string can contain. Bytes. */
const FILE_MAX = 500_000_000;

export const statement: Noun = {
  name: "statement",
  description: "statements of months",
  verbs: {
    verify: verbWithoutServers({
      description: "compare a statement with the redemptions; exit status 1 when it differs",
      argument: ["<file>", "the JSON or the CSV of GET /partner/statements/{month}"],
      options: {
        policy: option("<file>", "verify only the note of the JSON, offline, by your own copy of the policy"),
      },
      help:
        "JSON must equal the statement that the service keeps, and its hash, numbers,\n" +
        "sums and times must be those of the redemptions. CSV must have the hash,\n" +
        "number, sum and times of that statement.",
      examples: ["statement-2026-11.json", "statement-org_…-2026-11.csv", "statement-2026-11.json --policy policy"],
      async run(interaction, { policy }, file) {
        const text = readText(file, FILE_MAX);
        if (policy !== undefined)
          return printVerified(interaction, await verifySignedStatement(text, readText(policy, FILE_MAX)));
        await withServers(interaction, async (ctx) =>
          printVerified(ctx, await confirmed(ctx.pool, () => verifyServedStatement(ctx, text))),
        );
      },
    }),
  },
};

function printVerified(ctx: Interaction, { lines, ...statement }: Statement): void {
  ctx.print(statement, () => {
    const { month, redemptions, amountUsd, rowsHash } = statement;
    const sum = `${pluralize(redemptions, "redemption")}, $${amountUsd.toFixed(2)}`;
    return `The statement of ${month} is right: ${sum}.\nSHA-256 of its redemptions: ${rowsHash}`;
  });
}
