import type { ApiContext } from "../../context.ts";
import { readPartnerChain } from "../../services/read-chain.ts";
import { authenticate, callerOf } from "../authenticate.ts";
import { eventsQuery } from "../fields.ts";
import { answer, type Route } from "../route.ts";
import { validate } from "../validate.ts";

/** GET /partner/vouchers/{codeOrTicket}/events (contract, "Endpoints"). */
export function partnerEventsRoute(ctx: ApiContext): Route {
  return {
    path: "/partner/vouchers/:codeOrTicket/events",
    methods: {
      get: [
        authenticate(ctx, "voucher.read"),
        answer((request, response) =>
          readPartnerChain(
            ctx,
            callerOf(response),
            String(request.params.codeOrTicket),
            validate(eventsQuery, request.query),
          ),
        ),
      ],
    },
  };
}
