import type { ApiContext } from "../../context.ts";
import { takeVoucher } from "../../services/take-voucher.ts";
import { authenticateUser, userOf } from "../authenticate-user.ts";
import { pathId } from "../fields.ts";
import { jsonBody } from "../json-body.ts";
import { answer, type Route } from "../route.ts";

/** POST /r/{code}/claim: the referrer's own link, which opens both audiences (contract, "Referrer-only rules on open windows"). */
export function claimByLinkRoute(ctx: ApiContext): Route {
  return {
    path: "/r/:code/claim",
    methods: {
      post: [
        authenticateUser(ctx),
        ...jsonBody,
        answer((request, response) =>
          takeVoucher(ctx, userOf(response), { by: "link", linkCode: pathId(request.params.code) }),
        ),
      ],
    },
  };
}
