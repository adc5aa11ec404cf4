import { issueBatch } from "../acts/batch/issue.ts";
import { offerContract } from "../acts/contract/offer.ts";
import type { ListFilter, ListItem, ListName } from "../acts/db/lists.ts";
import { createLink } from "../acts/link/create.ts";
import { listCatalog } from "../acts/list-catalog.ts";
import { createProduct } from "../acts/product/create.ts";
import { readLineage } from "../acts/read-lineage.ts";
import type { Lineage } from "../core/catalog/db/catalog.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import {
  COUNT,
  layOutForOperators,
  linkActions,
  linkNext,
  linkTo,
  type OperatedSite,
  renderSection,
  renderStatus,
  renderTable,
  renderTrail,
  USD,
} from "../pages/operator-frame.ts";
import { qrCode } from "../pages/qr-code.ts";
import { MINUTES, renderTime } from "../pages/time.ts";
import { linkActs } from "./actions/forms.ts";
import { sayEmpty } from "./actions/say-empty.ts";
import type { Page, Pages, Visit } from "./visit.ts";

/** The page of an entity, with its parents and lists of its children. */
function pageOf(
  collection: string,
  entityType: "Brand" | "Product" | "ReferrerContract",
  title: (lineage: Lineage) => Html,
  ...lists: ((visit: Visit, collection: string, lineage: Lineage) => Promise<Html>)[]
): Page {
  return async (visit) => {
    const { ctx, site, id, recordVisit } = visit;
    const lineage = await readLineage(ctx, collection, id);
    await recordVisit(`page ${entityType}`, { type: entityType, id });
    const sections: Html[] = [];
    for (const list of lists) sections.push(await list(visit, collection, lineage));
    // A contract's page has its own links, because the possible changes depend on the status: see MOVES.
    const acts = entityType === "Brand" ? linkActs(site, "brand", id) : null;
    const main = html`${renderTrail(site, lineage)}<h1>${title(lineage)}</h1>\n${acts}${sections}`;
    return layOutForOperators(site, `${entityType} ${id}`, main);
  };
}

interface ListSection<Name extends ListName> {
  list: Name;
  title: string;
  /** The filter of the list by the id of the page's entity. */
  of: ListFilter<Name>;
  /** Actions on the page's entity. */
  actions: (lineage: Lineage) => readonly (readonly [path: string, label: string])[];
  columns: readonly string[];
  /** Shown instead of an empty list. */
  empty: (site: OperatedSite, id: string, lineage: Lineage) => Html;
  toRow: (item: ListItem<Name>, site: Site, seesCredentials: boolean) => readonly (Html | string)[];
  /** Maximum number of items on one page. */
  limit?: number;
}

/** A list on an entity's page. A query parameter names the item after which the list begins. */
function listOf<Name extends ListName>(section: ListSection<Name>) {
  const { list, title, of, actions, columns, empty, toRow, limit = 100 } = section;
  return async (
    { ctx, site, id, query, seesCredentials }: Visit,
    collection: string,
    lineage: Lineage,
  ): Promise<Html> => {
    const filters = { [of]: id } as Partial<Record<ListFilter<Name>, string>>;
    const { items, nextCursor } = await listCatalog(ctx, list, filters, { after: query(list), limit });
    const rows = items.map((item) => toRow(item, site, seesCredentials));
    return renderSection(
      list,
      title,
      linkActions(site, [collection, id], ...actions(lineage)),
      renderTable(title, columns, rows, query(list) === "" ? empty(site, id, lineage) : undefined),
      linkNext(nextCursor && `?${list}=${encodeURIComponent(nextCursor)}#${list}`),
    );
  };
}

const PRODUCTS = listOf({
  list: "products",
  title: "Products",
  of: "brand",
  actions: () => [["products/new", "Create a product"]],
  empty: (site, id) => sayEmpty(site, "The brand has no products yet.", createProduct, id),
  columns: ["Product", "Key", "Type", "Price"],
  toRow: ({ id, name, key, type, priceUsd }, site) => [
    linkTo(site, "products", id, name),
    html`<bdi>${key}</bdi>`,
    ...[type, USD.format(priceUsd)],
  ],
});

const CONTRACTS = listOf({
  list: "contracts",
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

const BATCHES = listOf({
  list: "batches",
  title: "Batches",
  of: "product",
  actions: () => [["batches/new", "Issue a batch"]],
  empty: (site, id) => sayEmpty(site, "The product has no vouchers yet.", issueBatch, id),
  columns: ["Batch", "Vouchers", "Open to users", "Audience", "Valid until"],
  toRow: ({ id, count, windows, audience, validUntil }, site) => [
    ...[
      linkTo(site, "batches", id),
      COUNT.format(count),
      windows.join(", "),
      audience,
      renderTime(validUntil, MINUTES),
    ],
  ],
});

const MOVES: Record<string, [string, string][]> = {
  Offered: [
    ["accept", "Accept it"],
    ["decline", "Decline it"],
  ],
  Active: [
    ["links/new", "Create a link"],
    ["end", "End it"],
  ],
};

const LINKS = listOf({
  list: "links",
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

/** The pages of brands, products and contracts. */
export const CATALOG_PAGES: Pages = {
  "/brands/:id": [
    "viewer",
    pageOf("brands", "Brand", ({ brandName }) => html`<bdi>${brandName}</bdi>`, PRODUCTS, CONTRACTS),
  ],
  "/products/:id": [
    "viewer",
    pageOf("products", "Product", ({ productName }) => html`<bdi>${productName}</bdi>`, BATCHES),
  ],
  "/contracts/:id": [
    "viewer",
    pageOf(
      "contracts",
      "ReferrerContract",
      ({ userId, contractStatus }) => html`Contract with <bdi>${userId}</bdi> ${renderStatus(String(contractStatus))}`,
      LINKS,
    ),
  ],
};
