import { z } from "zod";
import type { ApiContext } from "../../context.ts";
import { reserveVoucher } from "../../services/reserve-voucher.ts";
import { authenticate, callerOf } from "../authenticate.ts";
import { code } from "../fields.ts";
import { jsonBody } from "../json-body.ts";
import { answer, type Route } from "../route.ts";
import { validate } from "../validate.ts";

const body = z.object({ code });

/** POST /partner/vouchers/reserve (contract, "Endpoints"). */
export function reserveRoute(ctx: ApiContext): Route {
  return {
    path: "/partner/vouchers/reserve",
    leavesToLater: ["GET", "HEAD"],
    methods: {
      post: [
        authenticate(ctx, "voucher.redeem"),
        ...jsonBody,
        answer((request, response) => reserveVoucher(ctx, callerOf(response), validate(body, request.body).code)),
      ],
    },
  };
}
