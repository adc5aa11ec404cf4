import type { ApiContext } from "../../context.ts";
import { takeVoucher } from "../../services/take-voucher.ts";
import { authenticateUser, userOf } from "../authenticate-user.ts";
import { pathId } from "../fields.ts";
import { jsonBody } from "../json-body.ts";
import { answer, type Route } from "../route.ts";

/** POST /products/{id}/claim (contract, "Referrer-only rules on open windows"). */
export function claimProductRoute(ctx: ApiContext): Route {
  return {
    path: "/products/:id/claim",
    methods: {
      post: [
        authenticateUser(ctx),
        ...jsonBody,
        answer((request, response) =>
          takeVoucher(ctx, userOf(response), {
            by: "product",
            productId: pathId(request.params.id),
            paymentRef: null,
          }),
        ),
      ],
    },
  };
}
