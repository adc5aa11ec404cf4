import { redemptionsCsv, redemptionsQuery, redemptionsResponse } from "../../contract/redemptions.ts";
import { listRedemptions, readAllRedemptions } from "../../services/partner/list-redemptions.ts";
import { endpoint } from "../endpoint.ts";
import { partnerKey } from "../middleware/authenticate.ts";

export const redemptions = endpoint({
  path: "/partner/redemptions",
  operationId: "listRedemptions",
  summary: "List your organization's redemptions",
  description: `Every redemption by any key of your organization, one page at a time, to settle a day or to keep your own books.

Follow \`nextCursor\` until it is null, and each redemption is listed exactly once, also those that commit while you read. A list without \`to\` never ends: keep the last cursor and continue with it later. Only redemptions before \`completeUntil\` are listed, and none is ever added before it. The list has no voucher codes.

With \`Accept: text/csv\` the answer is one CSV file of all redemptions from \`from\` to the earlier of \`to\` and \`completeUntil\`; \`limit\` and \`cursor\` do not apply. The header \`Complete-Until\` has the end that it reaches.`,
  access: partnerKey("voucher.read"),
  query: redemptionsQuery,
  response: redemptionsResponse,
  responseDescription: "A page of redemptions.",
  handler: (ctx, { caller, query }) => listRedemptions(ctx, caller, query),
  csv: async (ctx, { caller, query }) => {
    const { until, pages } = readAllRedemptions(ctx, caller.organizationId, query, await ctx.completeUntil());
    return { headers: { "Complete-Until": until.toISOString() }, parts: redemptionsCsv(pages) };
  },
});
