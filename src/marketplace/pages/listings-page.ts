import { type Html, html } from "../../pages/html.ts";
import { layOut, type Site } from "../../pages/layout.ts";
import type { Locale } from "../../pages/locale.ts";
import { MINUTES } from "../../pages/time.ts";
import { type DepsOf, validate } from "../../platform/http/endpoint.ts";
import type { Visitor } from "../../platform/http/middleware/caller-signal.ts";
import { type ListingResponse, listingsQuery } from "../api/listings.ts";
import { viewListings } from "../view-listings.ts";

/** The marketplace's page, with the listings that an anonymous user may see. */
export async function renderListings(
  deps: DepsOf<typeof viewListings> & { config: Site },
  visitor: Visitor,
  query: unknown,
  locale: Locale,
): Promise<Html> {
  const { cursor, limit } = validate(listingsQuery, query);
  const { listings, nextCursor } = await viewListings(deps, visitor, null, cursor, limit);
  const place = `cursor=${encodeURIComponent(nextCursor ?? "")}&limit=${limit}`;
  const next = `${deps.config.basePath}/marketplace/listings?${place}`;
  const { title, description, lead, none, next: more } = locale.texts.listings;
  return layOut(deps.config, {
    locale,
    title,
    description,
    main: html`<h1>${title}</h1>
<p class="lead">${lead}</p>
${
  listings.length === 0
    ? html`<p class="notice">${none}</p>`
    : html`<ul \
class="cards">${listings.map((listing) => renderListing(listing, locale))}</ul>`
}
${nextCursor === null ? null : html`<p><a rel="next" href="${next}">${more}</a></p>`}`,
  });
}

function renderListing(listing: ListingResponse, { texts, usd, time }: Locale): Html {
  const { priceUsd, retailPriceUsd, benefitMonths, available, availableMore } = listing;
  const { frame, listings } = texts;
  const insteadOf = priceUsd < retailPriceUsd ? ` ${listings.insteadOf(usd.format(retailPriceUsd))}` : "";
  const lasting = benefitMonths === 0 ? "" : ` ${listings.lasting(frame.months(benefitMonths))}`;
  const badge = listing.referrerOnly ? html` <span class="badge waiting">${listings.referrersOnly}</span>` : null;
  return html`<li><h2>${frame.from(html`<bdi>${listing.productName}</bdi>`, html`<bdi>${listing.brand}</bdi>`)}</h2>
<p><strong>${usd.format(priceUsd)}</strong>${insteadOf}${lasting}${badge}</p>
<p>${listings.available(available, availableMore, time(listing.validUntil, MINUTES))}</p></li>
`;
}
