import { partnerKey } from "../../core/keys/routes/authenticate.ts";
import { type DepsOf, endpoint } from "../../platform/http/endpoint.ts";
import { TEXT } from "../../platform/http/respond.ts";
import { externalRefParameter, receipt } from "../api/receipt.ts";
import { REDEMPTION_RECEIPT_ERRORS, readRedemptionReceipt } from "../read-receipt.ts";

export const redemptionReceipt = endpoint({
  path: "/partner/redemptions/:externalRef/receipt",
  operationId: "readRedemptionReceipt",
  ownErrors: REDEMPTION_RECEIPT_ERRORS,
  summary: "Read a redemption's receipt",
  description:
    "A proof that the redemption's sealed event is in the transparency log. It has the event's payload and " +
    "verifies offline, also after this service is gone: keep it with your order. Until a checkpoint covers the " +
    "event, usually for a second, the response is 409 `not_logged_yet`.",
  access: partnerKey("voucher.read"),
  parameters: { externalRef: externalRefParameter },
  response: receipt,
  contentType: TEXT,
  responseDescription: "The receipt.",
  handler: (deps: DepsOf<typeof readRedemptionReceipt>, { caller, parameters }) =>
    readRedemptionReceipt(deps, caller, parameters.externalRef),
});
