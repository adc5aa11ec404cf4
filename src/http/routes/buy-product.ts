import { takeVoucher } from "../../services/take-voucher.ts";
import { EXAMPLE } from "../answers/example.ts";
import { TAKEN_EXAMPLES, taken } from "../answers/taken.ts";
import { signedInUser } from "../authenticate-user.ts";
import { endpoint } from "../endpoint.ts";
import { buyBody, pathId, productId } from "../fields.ts";

/** POST /products/{id}/buy (contract, "Referrer-only rules on open windows"). */
export const buyProduct = endpoint({
  method: "post",
  path: "/products/:id/buy",
  operationId: "buyProduct",
  tag: "Marketplace",
  summary: "Buy a product's voucher",
  description:
    "Gives the user a voucher of the product for a payment that the storefront has captured, from the batch that expires first among those open to the user. Once per user and `paymentRef`, over both ways to buy.",
  access: signedInUser,
  parameters: { id: productId },
  body: buyBody,
  bodyExamples: { payment: { summary: "A captured payment", value: { paymentRef: EXAMPLE.paymentRef } } },
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
  work: (ctx, { who, parameters, body }) =>
    takeVoucher(ctx, who, { by: "product", productId: pathId(parameters.id), paymentRef: body.paymentRef }),
});
