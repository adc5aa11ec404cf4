import { z } from "zod";
import type { ApiContext } from "../../context.ts";
import { releaseHold } from "../../services/release-hold.ts";
import { authenticate, callerOf } from "../authenticate.ts";
import { reason, ticket } from "../fields.ts";
import { jsonBody } from "../json-body.ts";
import { answer, type Route } from "../route.ts";
import { validate } from "../validate.ts";

const body = z.object({ ticket, reason: reason.nullish() });

/** POST /partner/vouchers/release (contract, "Endpoints"). */
export function releaseRoute(ctx: ApiContext): Route {
  return {
    path: "/partner/vouchers/release",
    leavesToLater: ["GET", "HEAD"],
    methods: {
      post: [
        authenticate(ctx, "voucher.redeem"),
        ...jsonBody,
        answer((request, response) => {
          const input = validate(body, request.body);
          return releaseHold(ctx, callerOf(response), input.ticket, input.reason ?? null);
        }),
      ],
    },
  };
}
