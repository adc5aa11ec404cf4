import { z } from "zod";
import { reserveVoucher } from "../../services/reserve-voucher.ts";
import { EXAMPLE } from "../answers/example.ts";
import { reserved } from "../answers/reserved.ts";
import { partnerKey } from "../authenticate.ts";
import { endpoint } from "../endpoint.ts";
import { code } from "../fields.ts";

/** POST /partner/vouchers/reserve (contract, "Endpoints"). */
export const reserve = endpoint({
  method: "post",
  path: "/partner/vouchers/reserve",
  leavesToLater: ["GET", "HEAD"],
  operationId: "reserveVoucher",
  tag: "Partner",
  summary: "Hold a voucher for one checkout",
  description:
    "Holds a voucher for 15 minutes, so that nobody else can redeem it meanwhile. The same key may ask again: it gets the same ticket, token and end. Any other key is refused while the hold lives.",
  access: partnerKey("voucher.redeem"),
  parameters: {},
  body: z.object({ code }),
  bodyExamples: { code: { summary: "By its code", value: { code: EXAMPLE.code } } },
  answer: reserved,
  answerDescription: "The hold, new or repeated.",
  answerExamples: {
    held: {
      summary: "Held",
      value: {
        ticket: EXAMPLE.ticket,
        token: EXAMPLE.token,
        expiresAt: EXAMPLE.reservedUntil,
        voucher: EXAMPLE.voucherId,
      },
    },
  },
  errors: [
    "voucher_not_found",
    "too_many_misses",
    "voucher_used",
    "voucher_voided",
    "voucher_expired",
    "reservation_ended",
    "voucher_reserved",
    "voucher_busy",
    "overloaded",
    "unavailable",
  ],
  work: (ctx, { who, body }) => reserveVoucher(ctx, who, body.code),
});
