import { z } from "zod";
import type { ApiContext } from "../../context.ts";
import { takeVoucher } from "../../services/take-voucher.ts";
import { authenticateUser, userOf } from "../authenticate-user.ts";
import { pathId, paymentRef } from "../fields.ts";
import { jsonBody } from "../json-body.ts";
import { answer, type Route } from "../route.ts";
import { validate } from "../validate.ts";

const body = z.object({ paymentRef });

/** POST /products/{id}/buy (contract, "Referrer-only rules on open windows"). */
export function buyProductRoute(ctx: ApiContext): Route {
  return {
    path: "/products/:id/buy",
    methods: {
      post: [
        authenticateUser(ctx),
        ...jsonBody,
        answer((request, response) => {
          const { paymentRef } = validate(body, request.body);
          return takeVoucher(ctx, userOf(response), {
            by: "product",
            productId: pathId(request.params.id),
            paymentRef,
          });
        }),
      ],
    },
  };
}
