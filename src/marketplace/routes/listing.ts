import { anyUser } from "../../core/keys/routes/authenticate-user.ts";
import { type DepsOf, endpoint, pathId } from "../../platform/http/endpoint.ts";
import { listingId, listingResponse } from "../api/listings.ts";
import { MARKETPLACE_ERRORS } from "../declared.ts";
import { viewOneListing } from "../view-listings.ts";

export const listing = endpoint({
  path: "/marketplace/listings/:id",
  operationId: "readListing",
  ownErrors: [MARKETPLACE_ERRORS.listing_not_found, "overloaded", "unavailable"],
  summary: "Read one listing",
  description: "One listing as the caller sees it. The token is optional.",
  access: anyUser,
  parameters: { id: listingId },
  response: listingResponse,
  responseDescription: "The listing.",
  handler: (deps: DepsOf<typeof viewOneListing>, { caller, visitor, parameters }) =>
    viewOneListing(deps, visitor, caller, pathId(parameters.id)),
});
