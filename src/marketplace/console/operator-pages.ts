import { sayEmpty } from "../../console/actions/say-empty.ts";
import { listOf, pageOf } from "../../console/catalog-pages.ts";
import type { ConsolePart } from "../../console/console-part.ts";
import { html } from "../../pages/html.ts";
import { linkTo, renderStatus } from "../../pages/operator-frame.ts";
import { qrCode } from "../../pages/qr-code.ts";
import { MINUTES, renderTime } from "../../pages/time.ts";
import { createLink, createListing, offerContract } from "../acts.ts";
import { CONTRACTS, LINKS } from "../db/contracts.ts";
import { LISTINGS } from "../db/listings.ts";

const CONTRACTS_OF_BRAND = listOf({
  list: CONTRACTS,
  title: "Contracts with referrers",
  of: "brand",
  actions: () => [["contracts/new", "Offer a contract"]],
  empty: (site, id) => sayEmpty(site, "The brand has no contracts yet.", offerContract, id),
  columns: ["Referrer", "Status", "Offered", "Ends"],
  toRow: ({ id, userId, status, offeredAt, endsAt }, site) => [
    linkTo(site, "contracts", id, userId),
    ...[renderStatus(status), renderTime(offeredAt, MINUTES), endsAt === null ? "" : renderTime(endsAt, MINUTES)],
  ],
});

const MOVES: Record<string, [string, string][]> = {
  Offered: [
    ["accept", "Accept the contract"],
    ["decline", "Decline the contract"],
  ],
  Active: [
    ["links/new", "Create a link"],
    ["end", "End the contract"],
  ],
};

const LINKS_OF_CONTRACT = listOf({
  list: LINKS,
  title: "Links",
  of: "contract",
  actions: ({ contractStatus }) => MOVES[String(contractStatus)] ?? [],
  empty: (site, id, { contractStatus }) => {
    if (contractStatus === "Active") return sayEmpty(site, "The contract has no links yet.", createLink, id);
    return contractStatus === "Offered"
      ? html`The contract has no links yet. They can be created when it is accepted.`
      : html`The contract has no links.`;
  },
  columns: ["Link", "QR code", "Product"],
  toRow: ({ code, productId, productName }, site, seesCredentials) => [
    ...(seesCredentials
      ? [html`<a href="${site.baseUrl}/r/${code}">${site.baseUrl}/r/${code}</a>`, qrCode(`${site.baseUrl}/r/${code}`)]
      : ["not shown to viewers", ""]),
    linkTo(site, "products", productId, productName),
  ],
  // With this limit, a page with QR codes stays below 100 kB.
  limit: 20,
});

/** A batch can be listed once. */
const LISTING_OF_BATCH = listOf({
  list: LISTINGS,
  title: "Listing",
  of: "batch",
  actions: () => [],
  empty: (site, id) => sayEmpty(site, "The batch is not on the marketplace.", createListing, id),
  columns: ["Listing", "Listed"],
  toRow: ({ id, createdAt }, site) => [
    html`<a href="${site.basePath}/marketplace/listings/${id}"><code>${id}</code></a>`,
    renderTime(createdAt, MINUTES),
  ],
});

const contractPage = pageOf(
  "contract",
  "ReferrerContract",
  ({ userId, contractStatus }) => ({
    title: `Contract with ${userId}`,
    heading: html`Contract with <bdi>${userId}</bdi> ${renderStatus(String(contractStatus))}`,
  }),
  [LINKS_OF_CONTRACT],
);

export const operatorPages: ConsolePart = {
  pages: { "/contracts/:id": ["viewer", contractPage] },
  brandSection: CONTRACTS_OF_BRAND,
  batchSection: LISTING_OF_BATCH,
};
