import { z } from "zod";
import type { ApiContext } from "../../context.ts";
import { isTicket } from "../../domain/ids.ts";
import { redeemVoucher } from "../../services/redeem-voucher.ts";
import { authenticate, callerOf } from "../authenticate.ts";
import { code, externalRef, note, ticket, token } from "../fields.ts";
import { jsonBody } from "../json-body.ts";
import { answer, type Route } from "../route.ts";
import { validate } from "../validate.ts";

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
  .refine((input) => input.code == null || input.ticket == null, "code and ticket must not be given together");

/** A code may be a ticket; a ticket is no code. What is not a ticket names no voucher. */
function ticketOnly(text: string): string {
  return isTicket(text) ? text : "";
}

/** POST /partner/vouchers/redeem (contract, "Endpoints"). */
export function redeemRoute(ctx: ApiContext): Route {
  return {
    path: "/partner/vouchers/redeem",
    leavesToLater: ["GET", "HEAD"],
    methods: {
      post: [
        authenticate(ctx, "voucher.redeem"),
        ...jsonBody,
        answer((request, response) => {
          const input = validate(body, request.body);
          return redeemVoucher(ctx, callerOf(response), {
            codeOrTicket: input.code ?? ticketOnly(input.ticket ?? ""),
            externalRef: input.externalRef,
            token: input.token ?? null,
            note: input.note ?? null,
          });
        }),
      ],
    },
  };
}
