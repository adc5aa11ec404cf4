import type { ApiContext } from "../../context.ts";
import { lookUpVoucher } from "../../services/look-up-voucher.ts";
import { authenticate, callerOf } from "../authenticate.ts";
import { answer, type Route } from "../route.ts";

/** GET /partner/vouchers/{codeOrTicket} (contract, "Endpoints"). */
export function lookUpRoute(ctx: ApiContext): Route {
  return {
    path: "/partner/vouchers/:codeOrTicket",
    methods: {
      get: [
        authenticate(ctx, "voucher.read"),
        answer((request, response) => lookUpVoucher(ctx, callerOf(response), String(request.params.codeOrTicket))),
      ],
    },
  };
}
