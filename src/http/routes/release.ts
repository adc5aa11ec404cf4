import { z } from "zod";
import { releaseHold } from "../../services/release-hold.ts";
import { EXAMPLE } from "../answers/example.ts";
import { released } from "../answers/released.ts";
import { partnerKey } from "../authenticate.ts";
import { endpoint } from "../endpoint.ts";
import { reason, ticket } from "../fields.ts";

/** POST /partner/vouchers/release (contract, "Endpoints"). */
export const release = endpoint({
  method: "post",
  path: "/partner/vouchers/release",
  leavesToLater: ["GET", "HEAD"],
  operationId: "releaseReservation",
  tag: "Partner",
  summary: "Give a hold back",
  description:
    "Ends a hold that is not needed, so that the voucher is free at once. Always safe to call: when the ticket holds nothing, for whatever reason, that is a 200 with `released: false`.",
  access: partnerKey("voucher.redeem"),
  parameters: {},
  body: z.object({ ticket, reason: reason.nullish() }),
  bodyExamples: {
    ticket: { summary: "The customer left", value: { ticket: EXAMPLE.ticket, reason: "customer left" } },
  },
  answer: released,
  answerDescription: "The ticket holds nothing any more.",
  answerExamples: {
    released: { summary: "The hold was ended", value: { released: true } },
    nothing: {
      summary: "There was nothing to end",
      value: {
        released: false,
        reason: "This ticket holds no voucher any more, or never did. Nothing needs to be released.",
      },
    },
  },
  errors: ["voucher_busy", "overloaded", "unavailable"],
  work: (ctx, { who, body }) => releaseHold(ctx, who, body.ticket, body.reason ?? null),
});
