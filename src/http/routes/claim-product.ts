import { takeVoucher } from "../../services/take-voucher.ts";
import { TAKEN_EXAMPLES, taken } from "../answers/taken.ts";
import { signedInUser } from "../authenticate-user.ts";
import { endpoint } from "../endpoint.ts";
import { emptyBody, pathId, productId } from "../fields.ts";

/** POST /products/{id}/claim (contract, "Referrer-only rules on open windows"). */
export const claimProduct = endpoint({
  method: "post",
  path: "/products/:id/claim",
  operationId: "claimProduct",
  tag: "Marketplace",
  summary: "Claim a product's voucher",
  description:
    "Gives the user a voucher of the product for nothing, from the batch that expires first among those open to the user. Once per user and product: a repeat answers the same voucher.",
  access: signedInUser,
  parameters: { id: productId },
  body: emptyBody,
  answer: taken,
  answerDescription: "The user's voucher.",
  answerExamples: TAKEN_EXAMPLES,
  errors: [
    "product_not_found",
    "referrers_only",
    "window_closed",
    "sold_out",
    "voucher_busy",
    "overloaded",
    "unavailable",
  ],
  work: (ctx, { who, parameters }) =>
    takeVoucher(ctx, who, { by: "product", productId: pathId(parameters.id), paymentRef: null }),
});
