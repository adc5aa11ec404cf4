import type { ApiContext } from "../../context.ts";
import { viewListings } from "../../services/view-listings.ts";
import { authenticateUser } from "../authenticate-user.ts";
import { listingsQuery } from "../fields.ts";
import { answer, type Route } from "../route.ts";
import { validate } from "../validate.ts";

/** GET /marketplace/listings: what is offered, a page at a time. The token is optional. */
export function listingsRoute(ctx: ApiContext): Route {
  return {
    path: "/marketplace/listings",
    methods: {
      get: [
        authenticateUser(ctx, true),
        answer((request, response) => {
          const { cursor, limit } = validate(listingsQuery, request.query);
          return viewListings(ctx, response.locals.userId ?? null, cursor, limit);
        }),
      ],
    },
  };
}
