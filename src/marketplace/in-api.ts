import type { WingBacklog } from "../core/metrics/open-metrics.ts";
import type { PublicPage } from "../pages/mount-pages.ts";
import type { DepsOf } from "../platform/http/endpoint.ts";
import type { Lifetime } from "../platform/lifetime.ts";
import { AcquisitionCommitter } from "./acquisition-committer.ts";
import { operatorPages } from "./console/operator-pages.ts";
import { countStock } from "./db/listings.ts";
import { MARKETPLACE_METRICS } from "./declared.ts";
import { KeptCounts } from "./kept-counts.ts";
import { renderLink } from "./pages/link-page.ts";
import { renderListings } from "./pages/listings-page.ts";
import { buyListing } from "./routes/buy-listing.ts";
import { buyProduct } from "./routes/buy-product.ts";
import { claimByLink } from "./routes/claim-by-link.ts";
import { claimProduct } from "./routes/claim-product.ts";
import { issuedContracts } from "./routes/issued-contracts.ts";
import { issuedLinks } from "./routes/issued-links.ts";
import { issuedListings } from "./routes/issued-listings.ts";
import { link } from "./routes/link.ts";
import { listing } from "./routes/listing.ts";
import { listings } from "./routes/listings.ts";

/**
 * Maximum number of listings whose vouchers are counted, newest first, and maximum of each count. Together they limit
 * the count to 100 000 index entries.
 */
const LISTINGS_MAX = 100;
const LEFT_MAX = 1_000;

type OpenDeps = ConstructorParameters<typeof AcquisitionCommitter>[0] & Lifetime;

const backlog: WingBacklog<Awaited<ReturnType<typeof countStock>>> = {
  name: "marketplace",
  measure: (pool) => countStock(pool, { listingsMax: LISTINGS_MAX, leftMax: LEFT_MAX }),
  record(metrics, stock) {
    const { stockLeft } = MARKETPLACE_METRICS.of(metrics);
    // Adds the stock per label, because a brand can have several listings, and the label `other` stands for several
    // brands.
    for (const { brand, left } of stock) stockLeft.with(brand).inc(left);
  },
};

const listingsPage: PublicPage<DepsOf<typeof renderListings>> = {
  path: "/marketplace/listings",
  render: (deps, visitor, { query }, locale) => renderListings(deps, visitor, query, locale),
};

const linkPage: PublicPage<DepsOf<typeof renderLink>> = {
  path: "/r/:code",
  // People share links, and programs that preview a link accept any format. So the page is the default.
  usual: "html",
  render: (deps, visitor, { params }, locale) => renderLink(deps, visitor, params.code, locale),
};

/** What the marketplace adds to the API: listings, contracts, links, claims and purchases. */
export const api = {
  open: (service: OpenDeps) => ({
    acquisitions: service.use(new AcquisitionCommitter(service)),
    keptCounts: service.use(new KeptCounts(service)),
  }),
  endpoints: [
    listings,
    listing,
    buyListing,
    buyProduct,
    claimProduct,
    link,
    claimByLink,
    issuedListings,
    issuedContracts,
    issuedLinks,
  ],
  described: { documents: ["marketplace.md"] },
  pages: { pages: [listingsPage, linkPage] },
  backlog,
  operatorPages,
};
