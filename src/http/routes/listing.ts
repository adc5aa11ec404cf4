import type { ApiContext } from "../../context.ts";
import { viewOneListing } from "../../services/view-listings.ts";
import { authenticateUser } from "../authenticate-user.ts";
import { pathId } from "../fields.ts";
import { answer, type Route } from "../route.ts";

/** GET /marketplace/listings/{id}. The token is optional. */
export function listingRoute(ctx: ApiContext): Route {
  return {
    path: "/marketplace/listings/:id",
    methods: {
      get: [
        authenticateUser(ctx, true),
        answer((request, response) => viewOneListing(ctx, response.locals.userId ?? null, pathId(request.params.id))),
      ],
    },
  };
}
