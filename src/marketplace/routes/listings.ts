import { anyUser } from "../../core/keys/routes/authenticate-user.ts";
import { type DepsOf, endpoint } from "../../platform/http/endpoint.ts";
import { listingsQuery, listingsResponse } from "../api/listings.ts";
import { viewListings } from "../view-listings.ts";

export const listings = endpoint({
  path: "/marketplace/listings",
  operationId: "readListings",
  ownErrors: ["overloaded", "unavailable"],
  summary: "List the marketplace",
  description:
    "Every listing whose vouchers are still valid, one page at a time. Everyone sees listings for referrers; " +
    "`canBuy` tells whether this caller may buy. A caller without a token is treated as a user without a " +
    "contract.",
  access: anyUser,
  query: listingsQuery,
  response: listingsResponse,
  responseDescription: "A page of listings.",
  handler: (deps: DepsOf<typeof viewListings>, { caller, visitor, query }) =>
    viewListings(deps, visitor, caller, query.cursor, query.limit),
});
