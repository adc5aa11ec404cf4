import { readAddress } from "../config.ts";
import { type ListedRedemptionView, redemptionsCsv } from "../contract/redemptions.ts";
import { findCompleteUntil } from "../db/redemptions.ts";
import { withLastStart } from "../local/directory.ts";
import { readAllRedemptions } from "../services/partner/list-redemptions.ts";
import { action, type Noun } from "./command.ts";
import { formatUtc } from "./format.ts";
import { formatTable } from "./layout.ts";
import { isoDate } from "./option-parsers.ts";

export const redemption: Noun = {
  name: "redemption",
  description: "redemptions of an organization",
  addVerbs(noun) {
    action<{ org: string; from?: Date; to?: Date; csv?: true }>(
      noun
        .command("list")
        .description("list the redemptions of a range, up to the time at which they are final")
        .requiredOption("--org <id>", "the organization")
        .option("--from <time>", "redemptions at or after this time", isoDate)
        .option("--to <time>", "redemptions before this time", isoDate)
        .option("--csv", "print CSV, as GET /partner/redemptions does"),
      ["redemption list --org org_… --from 2026-11-21 --to 2026-11-22", "redemption list --org org_… --csv"],
      async (ctx, { org, from, to, csv }) => {
        const reads = {
          pool: ctx.pool,
          config: readAddress(withLastStart(process.env)),
          partnerCalls: <T>(call: () => Promise<T>) => call(),
        };
        const { until, pages } = readAllRedemptions(reads, org, { from, to }, await findCompleteUntil(ctx.pool));
        const end = `The list is final and ends at ${formatUtc(until)}.`;
        if (csv) {
          for await (const part of redemptionsCsv(pages)) process.stdout.write(part);
          return void process.stderr.write(`${end}\n`);
        }
        const redemptions: ListedRedemptionView[] = [];
        for await (const page of pages) redemptions.push(...page);
        ctx.print({ redemptions, completeUntil: until.toISOString() }, () => {
          const headings = ["REDEEMED (UTC)", "REFERENCE", "PRODUCT", "USD", "KEY"];
          const rows = redemptions.map(
            ({ redeemedAt, externalRef, productName, discountPriceUsd, keyId, keyLabel }) => ({
              cells: [
                formatUtc(new Date(redeemedAt)),
                externalRef,
                productName,
                String(discountPriceUsd),
                keyLabel ?? keyId,
              ],
            }),
          );
          return `${rows.length === 0 ? "There are no redemptions." : formatTable(headings, rows)}\n${end}`;
        });
      },
    );
  },
};
