import { type DepsOf, endpoint } from "../../../platform/http/endpoint.ts";
import { partnerKey } from "../../keys/routes/authenticate.ts";
import { monthInPath, statementResponse } from "../api/statement.ts";
import { readStatement, readStatementFile } from "../read-statement.ts";

export const statement = endpoint({
  path: "/partner/statements/:month",
  operationId: "readStatement",
  summary: "Read the statement of a month",
  description: `What your organization has redeemed in a month, UTC, by brand, product and key: what both sides sign \
off. Once \`final\` is true, the statement never changes and, where the log is on, has a \`note\` by its key.

With \`Accept: text/csv\` the answer is a file with one line for each redemption, by \`redeemedAt\` and \
\`voucherInstanceId\`: its id, time, amount with two decimals, and the \`recordHash\` of its redeemed event. Lines end \
with CR and LF. The SHA-256 of the file without its first line is the \`rowsHash\` of the final statement.`,
  access: partnerKey("voucher.read"),
  parameters: { month: monthInPath },
  response: statementResponse,
  responseDescription: "The statement.",
  handler: (deps: DepsOf<typeof readStatement>, { caller, parameters: { month } }) =>
    readStatement(deps, caller, month),
  csv: (deps: DepsOf<typeof readStatement>, { caller, parameters: { month } }) =>
    readStatementFile(deps, caller, month),
});
