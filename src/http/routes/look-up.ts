import { lookUpVoucher } from "../../services/look-up-voucher.ts";
import { EXAMPLE, EXAMPLE_VERIFY_URL } from "../answers/example.ts";
import { lookedUp } from "../answers/looked-up.ts";
import { VOUCHER_EXAMPLE } from "../answers/voucher.ts";
import { partnerKey } from "../authenticate.ts";
import { endpoint } from "../endpoint.ts";
import { codeOrTicket } from "../fields.ts";

/** GET /partner/vouchers/{codeOrTicket} (contract, "Endpoints"). */
export const lookUp = endpoint({
  method: "get",
  path: "/partner/vouchers/:codeOrTicket",
  operationId: "lookUpVoucher",
  tag: "Partner",
  summary: "Look a voucher up",
  description:
    "Tells what a voucher is worth, how it stands and whether somebody holds it. Changes nothing. Vouchers of other organizations answer like vouchers that do not exist.",
  access: partnerKey("voucher.read"),
  parameters: { codeOrTicket },
  answer: lookedUp,
  answerDescription: "The voucher as it stands at this moment.",
  answerExamples: {
    free: {
      summary: "Free to be redeemed",
      value: { voucher: VOUCHER_EXAMPLE, reservation: null, verifyUrl: EXAMPLE_VERIFY_URL },
    },
    held: {
      summary: "Held by the calling key",
      value: {
        voucher: VOUCHER_EXAMPLE,
        reservation: {
          ticket: EXAMPLE.ticket,
          startedAt: EXAMPLE.reservedAt,
          expiresAt: EXAMPLE.reservedUntil,
          heldByCaller: true,
        },
        verifyUrl: EXAMPLE_VERIFY_URL,
      },
    },
    used: {
      summary: "Redeemed",
      value: {
        voucher: { ...VOUCHER_EXAMPLE, status: "Redeemed", redeemedAt: EXAMPLE.redeemedAt },
        reservation: null,
        verifyUrl: EXAMPLE_VERIFY_URL,
      },
    },
  },
  errors: ["voucher_not_found", "too_many_misses", "overloaded", "unavailable"],
  work: (ctx, { who, parameters }) => lookUpVoucher(ctx, who, parameters.codeOrTicket),
});
