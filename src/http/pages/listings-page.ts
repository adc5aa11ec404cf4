import { type ListingResponse, listingsQuery } from "../../contract/listings.ts";
import type { ApiContext } from "../../open-api.ts";
import { viewListings } from "../../services/marketplace/view-listings.ts";
import { validate } from "../endpoint.ts";
import { type Html, html } from "./html.ts";
import { layOut } from "./layout.ts";
import { renderMonths, USD } from "./link-page.ts";
import { MINUTES, renderTime } from "./time.ts";

/** What an anonymous user sees in the marketplace. */
export async function renderListings(ctx: ApiContext, query: unknown): Promise<Html> {
  const { cursor, limit } = validate(listingsQuery, query);
  const { listings, nextCursor } = await viewListings(ctx, null, cursor, limit);
  const next = `${ctx.config.basePath}/marketplace/listings?cursor=${encodeURIComponent(nextCursor ?? "")}&limit=${limit}`;
  return layOut(ctx.config, {
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
