import { verifyServedStatement } from "../acts/verify-statement.ts";
import { confirmed } from "../platform/db/durability.ts";
import { type Noun, verb } from "./command.ts";
import { pluralize } from "./format.ts";
import { readText } from "./read-text.ts";

/** Maximum length of a file: what a string can contain. Bytes. */
const FILE_MAX = 500_000_000;

export const statement: Noun = {
  name: "statement",
  description: "statements of months",
  verbs: {
    verify: verb({
      description: "compare a statement with the redemptions; exit status 1 when it differs",
      argument: ["<file>", "the JSON or the CSV of GET /partner/statements/{month}"],
      help:
        "JSON must equal the statement that the service keeps, and its hash, numbers,\n" +
        "sums and times must be those of the redemptions. CSV must have the hash,\n" +
        "number, sum and times of that statement.",
      examples: ["statement-2026-11.json", "statement-2026-11.csv"],
      async run(ctx, _options, file) {
        const text = readText(file, FILE_MAX);
        const found = await confirmed(ctx.pool, () => verifyServedStatement(ctx, text));
        const { lines, ...result } = found;
        ctx.print(result, () => {
          const { month, redemptions, amountUsd, rowsHash } = found;
          const sum = `${pluralize(redemptions, "redemption")}, $${amountUsd.toFixed(2)}`;
          return `The statement of ${month} is right: ${sum}.\nSHA-256 of its redemptions: ${rowsHash}`;
        });
      },
    }),
  },
};
