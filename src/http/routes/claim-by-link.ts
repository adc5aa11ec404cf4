import { takeVoucher } from "../../services/take-voucher.ts";
import { TAKEN_EXAMPLES, taken } from "../answers/taken.ts";
import { signedInUser } from "../authenticate-user.ts";
import { endpoint } from "../endpoint.ts";
import { emptyBody, linkCode, pathId } from "../fields.ts";

/** POST /r/{code}/claim: the referrer's own link, which opens both audiences (contract, "Referrer-only rules on open windows"). */
export const claimByLink = endpoint({
  method: "post",
  path: "/r/:code/claim",
  operationId: "claimByLink",
  tag: "Marketplace",
  summary: "Claim by a referrer's link",
  description:
    "Gives the user a voucher of the link's product for nothing, from batches of either audience, and records who sent them. Works while the referrer's contract is active. Once per user and product, like every claim.",
  access: signedInUser,
  parameters: { code: linkCode },
  body: emptyBody,
  answer: taken,
  answerDescription: "The user's voucher.",
  answerExamples: TAKEN_EXAMPLES,
  errors: ["link_not_found", "window_closed", "sold_out", "voucher_busy", "overloaded", "unavailable"],
  work: (ctx, { who, parameters }) => takeVoucher(ctx, who, { by: "link", linkCode: pathId(parameters.code) }),
});
