import { signedInUser } from "../../core/keys/routes/authenticate-user.ts";
import { productId } from "../../platform/api/fields.ts";
import { type DepsOf, endpoint, pathId } from "../../platform/http/endpoint.ts";
import { acquireVoucher } from "../acquire-voucher.ts";
import { acquireResponse, buyRequest } from "../api/acquire.ts";
import { ACQUISITION, MARKETPLACE_ERRORS } from "../declared.ts";

export const buyProduct = endpoint({
  method: "post",
  path: "/products/:id/buy",
  operationId: "buyProduct",
  ownErrors: [MARKETPLACE_ERRORS.product_not_found, ...ACQUISITION],
  summary: "Buy a product's voucher",
  description:
    "Gives the user a voucher of the product for a payment that the storefront has captured. The voucher comes " +
    "from the batch that expires first among those open to the user. One voucher per organization, user and " +
    "`paymentRef`, across both purchase endpoints.",
  access: signedInUser,
  reportedAs: "decision",
  parameters: { id: productId },
  body: buyRequest,
  response: acquireResponse,
  responseDescription: "The user's voucher.",
  handler: (deps: DepsOf<typeof acquireVoucher>, { caller, parameters, body }) =>
    acquireVoucher(deps, { userId: caller, way: "product", id: pathId(parameters.id), paymentRef: body.paymentRef }),
});
