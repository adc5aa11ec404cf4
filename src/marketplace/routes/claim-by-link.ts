import { signedInUser } from "../../core/keys/routes/authenticate-user.ts";
import { type DepsOf, endpoint, pathId } from "../../platform/http/endpoint.ts";
import { acquireVoucher } from "../acquire-voucher.ts";
import { acquireResponse, claimRequest, linkCode } from "../api/acquire.ts";
import { ACQUISITION, MARKETPLACE_ERRORS } from "../declared.ts";

export const claimByLink = endpoint({
  method: "post",
  path: "/r/:code/claim",
  operationId: "claimByLink",
  ownErrors: [
    MARKETPLACE_ERRORS.link_not_found,
    ...ACQUISITION.filter((error) => error !== MARKETPLACE_ERRORS.referrers_only),
  ],
  summary: "Claim through a referrer's link",
  description:
    "Gives the user a free voucher of the link's product, from batches of either audience, and records the " +
    "referrer. Works while the referrer's contract is active. One voucher per user and product, like every claim.",
  access: signedInUser,
  reportedAs: "decision",
  parameters: { code: linkCode },
  body: claimRequest,
  response: acquireResponse,
  responseDescription: "The user's voucher.",
  handler: (deps: DepsOf<typeof acquireVoucher>, { caller, parameters }) =>
    acquireVoucher(deps, { userId: caller, way: "link", id: pathId(parameters.code), paymentRef: null }),
});
