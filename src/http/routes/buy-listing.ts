import { z } from "zod";
import type { ApiContext } from "../../context.ts";
import { takeVoucher } from "../../services/take-voucher.ts";
import { authenticateUser, userOf } from "../authenticate-user.ts";
import { pathId, paymentRef } from "../fields.ts";
import { jsonBody } from "../json-body.ts";
import { answer, type Route } from "../route.ts";
import { validate } from "../validate.ts";

const body = z.object({ paymentRef });

/** POST /marketplace/listings/{id}/buy (contract, "Referrer-only rules on open windows"). */
export function buyListingRoute(ctx: ApiContext): Route {
  return {
    path: "/marketplace/listings/:id/buy",
    methods: {
      post: [
        authenticateUser(ctx),
        ...jsonBody,
        answer((request, response) => {
          const { paymentRef } = validate(body, request.body);
          return takeVoucher(ctx, userOf(response), {
            by: "listing",
            listingId: pathId(request.params.id),
            paymentRef,
          });
        }),
      ],
    },
  };
}
