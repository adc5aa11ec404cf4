import { takeVoucher } from "../../services/take-voucher.ts";
import { EXAMPLE } from "../answers/example.ts";
import { TAKEN_EXAMPLES, taken } from "../answers/taken.ts";
import { signedInUser } from "../authenticate-user.ts";
import { endpoint } from "../endpoint.ts";
import { buyBody, listingId, pathId } from "../fields.ts";

/** POST /marketplace/listings/{id}/buy (contract, "Referrer-only rules on open windows"). */
export const buyListing = endpoint({
  method: "post",
  path: "/marketplace/listings/:id/buy",
  operationId: "buyListing",
  tag: "Marketplace",
  summary: "Buy from a listing",
  description:
    "Gives the user a voucher of the listing's batch for a payment that the storefront has captured. Once per user and `paymentRef`, over both ways to buy: a repeat answers the same voucher, whatever became of the offer.",
  access: signedInUser,
  parameters: { id: listingId },
  body: buyBody,
  bodyExamples: { payment: { summary: "A captured payment", value: { paymentRef: EXAMPLE.paymentRef } } },
  answer: taken,
  answerDescription: "The user's voucher.",
  answerExamples: TAKEN_EXAMPLES,
  errors: [
    "listing_not_found",
    "referrers_only",
    "window_closed",
    "sold_out",
    "voucher_busy",
    "overloaded",
    "unavailable",
  ],
  work: (ctx, { who, parameters, body }) =>
    takeVoucher(ctx, who, { by: "listing", listingId: pathId(parameters.id), paymentRef: body.paymentRef }),
});
