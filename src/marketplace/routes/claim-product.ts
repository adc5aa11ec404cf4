import { signedInUser } from "../../core/keys/routes/authenticate-user.ts";
import { productId } from "../../platform/api/fields.ts";
import { type DepsOf, endpoint, pathId } from "../../platform/http/endpoint.ts";
import { acquireVoucher } from "../acquire-voucher.ts";
import { acquireResponse, claimRequest } from "../api/acquire.ts";
import { ACQUISITION, MARKETPLACE_ERRORS } from "../declared.ts";

export const claimProduct = endpoint({
  method: "post",
  path: "/products/:id/claim",
  operationId: "claimProduct",
  ownErrors: [MARKETPLACE_ERRORS.product_not_found, ...ACQUISITION],
  summary: "Claim a product's voucher",
  description:
    "Gives the user a free voucher of the product, from the batch that expires first among those open to the " +
    "user. One voucher per user and product: a repeat returns the same voucher.",
  access: signedInUser,
  reportedAs: "decision",
  parameters: { id: productId },
  body: claimRequest,
  response: acquireResponse,
  responseDescription: "The user's voucher.",
  handler: (deps: DepsOf<typeof acquireVoucher>, { caller, parameters }) =>
    acquireVoucher(deps, { userId: caller, way: "product", id: pathId(parameters.id), paymentRef: null }),
});
