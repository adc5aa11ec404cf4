import type { RequestHandler } from "express";
import { type ListingResponse, type ListingsResponse, listingsQuery } from "../../contract/listings.ts";
import type { ApiContext } from "../../open-api.ts";
import { viewListings } from "../../services/marketplace/view-listings.ts";
import { validate } from "../endpoint.ts";
import { consumeAddressLimit } from "../middleware/rate-limit.ts";
import { type Html, html } from "./html.ts";
import { layOut, type Site } from "./layout.ts";
import { renderMonths, USD } from "./link-page.ts";
import { sendPage, wantsPage } from "./offer-page.ts";
import { MINUTES, renderTime } from "./time.ts";

/** `GET /marketplace/listings` as a page: what an anonymous user sees. A request that does not accept a page gets JSON. */
export function showListingsPage(ctx: ApiContext): RequestHandler {
  return async (request, response, next) => {
    if (!wantsPage(response)) return next();
    response.locals.route = "/marketplace/listings";
    await consumeAddressLimit(ctx, request, response);
    const { cursor, limit } = validate(listingsQuery, request.query);
    sendPage(response, 200, renderListingsPage(ctx.config, await viewListings(ctx, null, cursor, limit), limit));
  };
}

function renderListingsPage(site: Site, { listings, nextCursor }: ListingsResponse, limit: number): Html {
  const next = `${site.basePath}/marketplace/listings?cursor=${encodeURIComponent(nextCursor ?? "")}&limit=${limit}`;
  return layOut(site, {
    title: "Marketplace",
    description: "Vouchers that can be bought.",
    main: html`<h1>Marketplace</h1>
<p class="lead">Vouchers on offer. You buy them in the app or shop in which you collect vouchers.</p>
${listings.length === 0 ? html`<p class="notice">There are no listings here.</p>` : html`<ul class="cards">${listings.map(renderListing)}</ul>`}
${nextCursor === null ? null : html`<p><a rel="next" href="${next}">More vouchers</a></p>`}`,
  });
}

function renderListing(listing: ListingResponse): Html {
  const { priceUsd, retailPriceUsd, benefitMonths, available, availableMore } = listing;
  return html`<li><h2><bdi>${listing.productName}</bdi> from <bdi>${listing.brand}</bdi></h2>
<p><strong>${USD.format(priceUsd)}</strong>${priceUsd < retailPriceUsd ? ` instead of ${USD.format(retailPriceUsd)}` : ""}${benefitMonths === 0 ? "" : ` for ${renderMonths(benefitMonths)}`}${listing.referrerOnly ? html` <span class="badge waiting">For referrers only</span>` : null}</p>
<p>Available: ${availableMore ? "more than " : ""}${available}. Use it by ${renderTime(listing.validUntil, MINUTES)}.</p></li>
`;
}
