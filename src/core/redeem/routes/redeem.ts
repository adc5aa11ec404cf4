import { type DepsOf, endpoint } from "../../../platform/http/endpoint.ts";
import { partnerKey } from "../../keys/routes/authenticate.ts";
import { redeemRequest, redeemResponse } from "../api/redeem.ts";
import { redeemVoucher } from "../redeem-voucher.ts";

export const redeem = endpoint({
  method: "post",
  path: "/partner/vouchers/redeem",
  operationId: "redeemVoucher",
  summary: "Redeem a voucher, exactly once",
  description: `Redeems a voucher under your own order reference, exactly once. Repeat the call with the same \
\`externalRef\` as often as you like: it redeems one voucher and returns the same result, with \`alreadyConfirmed: \
true\`.

**If you get no response, or a 503, send the call again with the same \`externalRef\` until you get another \
response.** A different \`externalRef\` is a different order and redeems another voucher.

A refusal confirms nothing, so its \`externalRef\` can be used again. A reservation made by your own key does not \
prevent redemption. A voucher reserved by another key of your organization requires the reservation's \`token\`.`,
  access: partnerKey("voucher.redeem"),
  reportedAs: "redemption",
  body: redeemRequest,
  response: redeemResponse,
  responseDescription: "The redemption under this `externalRef`, new or repeated.",
  handler: (deps: DepsOf<typeof redeemVoucher>, { caller, body, receivedAtMs }) =>
    redeemVoucher(deps, caller, body, receivedAtMs),
});
