import { type Html, html } from "../../pages/html.ts";
import { layOut, type Site } from "../../pages/layout.ts";
import type { Locale } from "../../pages/locale.ts";
import { type DepsOf, validate } from "../../platform/http/endpoint.ts";
import type { Visitor } from "../../platform/http/middleware/caller-signal.ts";
import { type ListingResponse, listingsQuery } from "../api/listings.ts";
import { findListings } from "../view-listings.ts";

/** The marketplace's page, with the listings that an anonymous user may see. */
export async function renderListings(
  deps: DepsOf<typeof findListings> & { config: Site },
  visitor: Visitor,
  query: unknown,
  locale: Locale,
): Promise<Html> {
  const { cursor, limit } = validate(listingsQuery, query);
  const { listings, nextCursor } = await findListings(deps, visitor, null, cursor, limit);
  const nextQuery = `cursor=${encodeURIComponent(nextCursor ?? "")}&limit=${limit}`;
  const next = `${deps.config.basePath}/marketplace/listings?${nextQuery}`;
  const { t } = locale;
  const title = t("marketplace.listings.title");
  return layOut(deps.config, {
    locale,
    forDevelopers: false,
    title,
    description: t("marketplace.listings.description"),
    main: html`<h1>${title}</h1>
<p class="lead">${t("marketplace.listings.lead")}</p>
${
  listings.length === 0
    ? html`<p class="notice">${t("marketplace.listings.none")}</p>`
    : html`<ul \
class="cards">${listings.map(({ shown, timeZone }) => renderListing(shown, locale.in(timeZone)))}</ul>`
}
${nextCursor === null ? null : html`<p><a rel="next" href="${next}">${t("marketplace.listings.next")}</a></p>`}`,
  });
}

function renderListing(listing: ListingResponse, { t, markup, usd, end }: Locale): Html {
  const { priceUsd, retailPriceUsd, benefitMonths, available, availableMore } = listing;
  const insteadOf =
    priceUsd < retailPriceUsd ? ` ${t("marketplace.listings.insteadOf", { price: usd.format(retailPriceUsd) })}` : "";
  const lasting =
    benefitMonths === 0
      ? ""
      : ` ${t("marketplace.listings.lasting", { months: t("frame.months", { months: benefitMonths }) })}`;
  const badge = listing.referrerOnly
    ? html` <span class="badge waiting">${t("marketplace.listings.referrersOnly")}</span>`
    : null;
  const product = html`<bdi>${listing.productName}</bdi>`;
  const brand = html`<bdi>${listing.brand}</bdi>`;
  const supply = availableMore ? "marketplace.listings.moreAvailable" : "marketplace.listings.available";
  return html`<li><h2>${markup("frame.from", { product, brand })}</h2>
<p><strong>${usd.format(priceUsd)}</strong>${insteadOf}${lasting}${badge}</p>
<p>${markup(supply, { count: available, until: end(new Date(listing.validUntil)) })}</p></li>
`;
}
