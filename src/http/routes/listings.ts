import { viewListings } from "../../services/view-listings.ts";
import { EXAMPLE } from "../answers/example.ts";
import { LISTING_EXAMPLE, listingsPage } from "../answers/listing.ts";
import { anyUser } from "../authenticate-user.ts";
import { endpoint } from "../endpoint.ts";
import { listingsQuery } from "../fields.ts";

/** GET /marketplace/listings: what is offered, a page at a time. The token is optional. */
export const listings = endpoint({
  method: "get",
  path: "/marketplace/listings",
  operationId: "readListings",
  tag: "Marketplace",
  summary: "See what is offered",
  description:
    "Every listing of vouchers that are still valid, a page at a time. Listings for referrers are shown to everyone; `canBuy` tells whether this very caller may buy. Without a token, the caller is judged like a user without any contract.",
  access: anyUser,
  parameters: {},
  query: listingsQuery,
  answer: listingsPage,
  answerDescription: "A page of listings.",
  answerExamples: {
    page: {
      summary: "A page with another behind it",
      value: { listings: [LISTING_EXAMPLE], nextCursor: EXAMPLE.listingId },
    },
  },
  errors: ["overloaded", "unavailable"],
  work: (ctx, { who, query }) => viewListings(ctx, who, query.cursor, query.limit),
});
