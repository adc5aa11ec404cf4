import { lookUp } from "../../../../src/core/look-up/routes/look-up.ts";
import { redeem } from "../../../../src/core/redeem/routes/redeem.ts";
import { reserve } from "../../../../src/core/reserve/routes/reserve.ts";
import {
  lookUpInOneQuery,
  type RedeemBody,
  redeemInOneTransaction,
  reserveInOneTransaction,
} from "./one-transaction.ts";
import { openBaseline } from "./open-baseline.ts";

// Baseline (a): a simple service. After the service's own checks, each request runs one transaction in the API process,
// without queue and lease.

const { work, replaceWork, serve } = openBaseline();

await serve([
  replaceWork(reserve, "voucher.redeem", (caller, { code }: { code: string }) =>
    reserveInOneTransaction(work, caller, code),
  ),
  replaceWork(redeem, "voucher.redeem", (caller, body: RedeemBody) => redeemInOneTransaction(work, caller, body)),
  replaceWork(lookUp, "voucher.read", (caller, _body, request) =>
    lookUpInOneQuery(work, caller, String(request.params.codeOrTicket)),
  ),
]);
