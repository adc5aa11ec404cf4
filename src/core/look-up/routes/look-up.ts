import { type DepsOf, endpoint } from "../../../platform/http/endpoint.ts";
import { partnerKey } from "../../keys/routes/authenticate.ts";
import { codeOrTicket } from "../../voucher/api/typed-fields.ts";
import { lookUpResponse } from "../api/look-up.ts";
import { lookUpVoucher } from "../look-up-voucher.ts";

export const lookUp = endpoint({
  path: "/partner/vouchers/:codeOrTicket",
  operationId: "lookUpVoucher",
  summary: "Look up a voucher",
  description:
    "Returns a voucher's value, its status and its live reservation. Changes nothing. Vouchers of other " +
    "organizations answer like vouchers that do not exist.",
  access: partnerKey("voucher.read"),
  parameters: { codeOrTicket },
  response: lookUpResponse,
  responseDescription: "The voucher's current state.",
  handler: (deps: DepsOf<typeof lookUpVoucher>, { caller, parameters }) =>
    lookUpVoucher(deps, caller, parameters.codeOrTicket),
});
