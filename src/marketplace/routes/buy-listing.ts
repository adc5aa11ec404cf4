import { signedInUser } from "../../core/keys/routes/authenticate-user.ts";
import { type DepsOf, endpoint, pathId } from "../../platform/http/endpoint.ts";
import { acquireVoucher } from "../acquire-voucher.ts";
import { acquireResponse, buyRequest } from "../api/acquire.ts";
import { listingId } from "../api/listings.ts";
import { ACQUISITION, MARKETPLACE_ERRORS } from "../declared.ts";

export const buyListing = endpoint({
  method: "post",
  path: "/marketplace/listings/:id/buy",
  operationId: "buyListing",
  ownErrors: [MARKETPLACE_ERRORS.listing_not_found, ...ACQUISITION],
  summary: "Buy from a listing",
  description:
    "Gives the user a voucher of the listing's batch for a payment that the storefront has captured. One voucher " +
    "per organization, user and `paymentRef`, across both purchase endpoints: a repeat returns the same voucher, " +
    "even if the offer has since closed.",
  access: signedInUser,
  reportedAs: "decision",
  parameters: { id: listingId },
  body: buyRequest,
  response: acquireResponse,
  responseDescription: "The user's voucher.",
  handler: (deps: DepsOf<typeof acquireVoucher>, { caller, parameters, body }) =>
    acquireVoucher(deps, { userId: caller, way: "listing", id: pathId(parameters.id), paymentRef: body.paymentRef }),
});
