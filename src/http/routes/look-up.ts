import { codeOrTicket } from "../../contract/fields.ts";
import { lookUpResponse } from "../../contract/look-up.ts";
import { lookUpVoucher } from "../../services/partner/look-up-voucher.ts";
import { endpoint } from "../endpoint.ts";
import { partnerKey } from "../middleware/authenticate.ts";

export const lookUp = endpoint({
  path: "/partner/vouchers/:codeOrTicket",
  operationId: "lookUpVoucher",
  summary: "Look up a voucher",
  description:
    "Returns a voucher's value, its status and its live reservation. Changes nothing. Vouchers of other organizations answer like vouchers that do not exist.",
  access: partnerKey("voucher.read"),
  parameters: { codeOrTicket },
  response: lookUpResponse,
  responseDescription: "The voucher's current state.",
  handler: (ctx, { caller, parameters }) => lookUpVoucher(ctx, caller, parameters.codeOrTicket),
});
