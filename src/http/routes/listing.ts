import { viewOneListing } from "../../services/view-listings.ts";
import { LISTING_EXAMPLE, listing as listingAnswer } from "../answers/listing.ts";
import { anyUser } from "../authenticate-user.ts";
import { endpoint } from "../endpoint.ts";
import { listingId, pathId } from "../fields.ts";

/** GET /marketplace/listings/{id}. The token is optional. */
export const listing = endpoint({
  method: "get",
  path: "/marketplace/listings/:id",
  operationId: "readListing",
  tag: "Marketplace",
  summary: "See one listing",
  description: "One listing as the caller sees it.",
  access: anyUser,
  parameters: { id: listingId },
  answer: listingAnswer,
  answerDescription: "The listing.",
  answerExamples: {
    open: { summary: "Open to everyone", value: LISTING_EXAMPLE },
    referrersOnly: {
      summary: "For referrers, seen by somebody who is none",
      value: { ...LISTING_EXAMPLE, audience: "ReferrerOnly", referrerOnly: true, canBuy: false },
    },
  },
  errors: ["listing_not_found", "overloaded", "unavailable"],
  work: (ctx, { who, parameters }) => viewOneListing(ctx, who, pathId(parameters.id)),
});
