import { partnerKey } from "../../core/keys/routes/authenticate.ts";
import { receiptQuery } from "../../core/redeem/api/redemptions.ts";
import { type DepsOf, endpoint } from "../../platform/http/endpoint.ts";
import { TEXT } from "../../platform/http/respond.ts";
import { receipt } from "../api/receipt.ts";
import { REDEMPTION_RECEIPT_ERRORS, readRedemptionReceipt } from "../read-receipt.ts";

export const receiptByReference = endpoint({
  path: "/partner/redemptions/receipt",
  operationId: "readReceiptByReference",
  ownErrors: REDEMPTION_RECEIPT_ERRORS,
  summary: "Read a redemption's receipt by a query",
  description:
    "The response of `GET /partner/redemptions/{externalRef}/receipt`, also through proxies that change a path " +
    "with an encoded slash.",
  access: partnerKey("voucher.read"),
  query: receiptQuery,
  response: receipt,
  contentType: TEXT,
  responseDescription: "The receipt.",
  handler: (deps: DepsOf<typeof readRedemptionReceipt>, { caller, query }) =>
    readRedemptionReceipt(deps, caller, query.externalRef),
});
