import { z } from "zod";
import { isTicket } from "../../domain/ids.ts";
import { redeemVoucher } from "../../services/redeem-voucher.ts";
import { EXAMPLE } from "../answers/example.ts";
import { REDEEMED_EXAMPLE, redeemed } from "../answers/redeemed.ts";
import { partnerKey } from "../authenticate.ts";
import { endpoint } from "../endpoint.ts";
import { code, externalRef, note, ticket, token } from "../fields.ts";

// A field that is null counts as absent: many clients send their empty fields.
const body = z
  .object({
    code: code.nullish(),
    ticket: ticket.nullish(),
    externalRef,
    token: token.nullish(),
    note: note.nullish(),
  })
  .refine((input) => input.code != null || input.ticket != null, "code or ticket is required")
  .refine((input) => input.code == null || input.ticket == null, "code and ticket must not be given together")
  .meta({
    description: "Exactly one of `code` and `ticket` names the voucher. A field that is null counts as absent.",
  });

/** A code may be a ticket; a ticket is no code. What is not a ticket names no voucher. */
function ticketOnly(text: string): string {
  return isTicket(text) ? text : "";
}

/** POST /partner/vouchers/redeem (contract, "Endpoints"). */
export const redeem = endpoint({
  method: "post",
  path: "/partner/vouchers/redeem",
  leavesToLater: ["GET", "HEAD"],
  operationId: "redeemVoucher",
  tag: "Partner",
  summary: "Burn a voucher, once",
  description: `Burns a voucher under your own order reference. Exactly once: repeat the call with the same \`externalRef\` as often as you like, it burns one voucher and answers the same result, with \`alreadyConfirmed: true\`.

**If there is no answer, or a 503, send it again with the same \`externalRef\` until it answers.** A different \`externalRef\` is a different order and burns another voucher.

A refusal confirms nothing: its \`externalRef\` may be used again. A hold of your own key does not stand in the way; one of another key of your organization gives way to its \`token\`.`,
  access: partnerKey("voucher.redeem"),
  parameters: {},
  body,
  bodyExamples: {
    code: { summary: "By its code", value: { code: EXAMPLE.code, externalRef: EXAMPLE.externalRef } },
    ticket: {
      summary: "By a reservation's ticket, with a note",
      value: { ticket: EXAMPLE.ticket, externalRef: EXAMPLE.externalRef, note: "Till 4, evening shift" },
    },
    till: {
      summary: "At a till: held by the web shop's key",
      value: { ticket: EXAMPLE.ticket, token: EXAMPLE.token, externalRef: EXAMPLE.externalRef },
    },
  },
  answer: redeemed,
  answerDescription: "The burn that stands under this `externalRef`, new or repeated.",
  answerExamples: {
    burned: { summary: "Burned by this call", value: REDEEMED_EXAMPLE },
    repeated: { summary: "A repeat: burned before", value: { ...REDEEMED_EXAMPLE, alreadyConfirmed: true } },
  },
  errors: [
    "voucher_not_found",
    "too_many_misses",
    "voucher_used",
    "voucher_voided",
    "voucher_expired",
    "reservation_ended",
    "token_mismatch",
    "voucher_reserved",
    "redeem_timeout",
    "redeem_unknown",
    "voucher_busy",
    "overloaded",
    "unavailable",
  ],
  work: (ctx, { who, body }) =>
    redeemVoucher(ctx, who, {
      codeOrTicket: body.code ?? ticketOnly(body.ticket ?? ""),
      externalRef: body.externalRef,
      token: body.token ?? null,
      note: body.note ?? null,
    }),
});
