import { runAtOnce } from "../core/callers/bulkhead.ts";
import { type ListedRedemptionView, redemptionsCsv } from "../core/redeem/api/redemptions.ts";
import { findCompleteUntil } from "../core/redeem/db/redemptions.ts";
import { readAllRedemptions } from "../core/redeem/list-redemptions.ts";
import { readAddress } from "../platform/config.ts";
import { confirmed } from "../platform/db/durability.ts";
import { type Noun, verb } from "./command.ts";
import { formatTable, formatUtc } from "./format.ts";
import { flag, ORG, option, time } from "./options.ts";

export const redemption: Noun = {
  name: "redemption",
  description: "redemptions of an organization",
  verbs: {
    list: verb({
      description: "list the redemptions of a range, up to the time at which they are final",
      options: {
        org: ORG,
        from: option("<time>", "redemptions at or after this time, or from this day on", time("start")),
        to: option("<time>", "redemptions before this time, or to the end of this day", time("rangeEnd")),
        csv: flag("print CSV, as GET /partner/redemptions does", ["json"]),
      },
      examples: ["--org org_… --from 2026-11-01 --to 2026-11-30", "--org org_… --csv"],
      async run(ctx, { org, csv, ...range }) {
        const completeUntil = await confirmed(ctx.pool, () => findCompleteUntil(ctx.pool));
        const reads = {
          config: readAddress(ctx.host.readEnvironment()),
          pool: ctx.pool,
          partnerCalls: runAtOnce,
        };
        const { until, pages } = readAllRedemptions(reads, { organizationId: org }, range, completeUntil);
        const end = `The list is final and ends at ${formatUtc(until)}.`;
        if (csv) {
          for await (const part of redemptionsCsv(pages)) process.stdout.write(part);
          return void process.stderr.write(`${end}\n`);
        }
        const redemptions: ListedRedemptionView[] = [];
        for await (const page of pages) redemptions.push(...page);
        ctx.print({ redemptions, completeUntil: until.toISOString() }, () => {
          const headings = ["REDEEMED (UTC)", "REFERENCE", "PRODUCT", "USD", "KEY"];
          const rows = redemptions.map((one) => {
            const cells = [formatUtc(new Date(one.redeemedAt)), one.externalRef, one.productName];
            return { cells: [...cells, String(one.discountPriceUsd), one.keyLabel ?? one.keyId] };
          });
          return `${formatTable(headings, rows, "There are no redemptions.")}\n${end}`;
        });
      },
    }),
  },
};
