import { type DepsOf, endpoint } from "../../../platform/http/endpoint.ts";
import { partnerKey } from "../../keys/routes/authenticate.ts";
import { REDEMPTION_EXAMPLES, redeemResponse } from "../api/redeem.ts";
import { externalRefInPath } from "../api/redemptions.ts";
import { readRedemption } from "../read-redemption.ts";

export const redemption = endpoint({
  path: "/partner/redemptions/:externalRef",
  operationId: "readRedemption",
  summary: "Read the redemption of a reference",
  description:
    "What this `externalRef` redeemed, as a repeated redeem would answer it, without trying to redeem anything. A " +
    "404 is no proof that an attempt failed: it may still be in progress. Repeat the redeem to find out.",
  access: partnerKey("voucher.read"),
  parameters: { externalRef: externalRefInPath },
  response: redeemResponse,
  responseDescription: "The redemption under this reference. `alreadyConfirmed` is true.",
  responseExamples: REDEMPTION_EXAMPLES,
  handler: (deps: DepsOf<typeof readRedemption>, { caller, parameters }) =>
    readRedemption(deps, caller, parameters.externalRef),
});
