import { invalidField } from "../../../platform/api/errors.ts";
import { type DepsOf, endpoint } from "../../../platform/http/endpoint.ts";
import { partnerKey } from "../../keys/routes/authenticate.ts";
import { redemptionsCsv, redemptionsQuery, redemptionsResponse } from "../api/redemptions.ts";
import { listRedemptions, readAllRedemptions } from "../list-redemptions.ts";
import { listRedemptionOf } from "../read-redemption.ts";

type Deps = DepsOf<typeof listRedemptions> & DepsOf<typeof listRedemptionOf>;

export const redemptions = endpoint({
  path: "/partner/redemptions",
  operationId: "listRedemptions",
  summary: "List your organization's redemptions",
  description: `Every redemption by any key of your organization, one page at a time, to settle a day or to keep your \
own books.

Follow \`nextCursor\` until it is null, and each redemption is listed exactly once, also those that commit while you \
read. A list without \`to\` never ends: keep the last cursor and continue with it later. Only redemptions before \
\`completeUntil\` are listed, and none is ever added before it. The list has no voucher codes.

With \`externalRef\`, the list has the redemption under this reference or nothing, also a redemption after \
\`completeUntil\`.

With \`Accept: text/csv\` the answer is one CSV file of all redemptions from \`from\` to the earlier of \`to\` and \
\`completeUntil\`; \`limit\` and \`cursor\` do not apply. The header \`Complete-Until\` has the end that it reaches. \
The file begins when it is whole, after at most 50 seconds. One with fewer bytes than its \`Content-Length\` was cut. \
A key has two files at a time.`,
  access: partnerKey("voucher.read"),
  query: redemptionsQuery,
  response: redemptionsResponse,
  responseDescription: "A page of redemptions.",
  handler: (deps: Deps, { caller, query: { externalRef, ...range } }) =>
    externalRef === undefined ? listRedemptions(deps, caller, range) : listRedemptionOf(deps, caller, externalRef),
  csv: async (deps: Deps, { caller, query }) => {
    if (query.externalRef !== undefined) throw invalidField("externalRef", "noCsv");
    const { until, pages } = readAllRedemptions(deps, caller, query, await deps.completeUntil(caller));
    return { headers: { "Complete-Until": until.toISOString() }, parts: redemptionsCsv(pages) };
  },
});
