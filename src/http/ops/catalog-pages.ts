import type { Request } from "express";
import type { Place } from "../../db/catalog.ts";
import type { ListFilter, ListItem, ListName } from "../../db/lists.ts";
import type { ApiContext } from "../../open-api.ts";
import { listCatalog } from "../../services/admin/list-catalog.ts";
import { readPlace } from "../../services/admin/read-place.ts";
import { type Operator, recordLook } from "../../services/audit/record-look.ts";
import { pathId } from "../endpoint.ts";
import { type Html, html } from "../pages/html.ts";
import { qrCode } from "../pages/qr-code.ts";
import { MINUTES, renderTime } from "../pages/time.ts";
import { linkActions } from "./action-links.ts";
import { COUNT, layOutForOperators, linkBatch, opsPath, renderStatus, renderTable, USD } from "./operator-frame.ts";
import { renderTrail } from "./render-trail.ts";

/** The page of an entity: what it belongs to, and lists of what belongs to it. */
function pageOf(
  collection: string,
  entityType: "Brand" | "Product" | "ReferrerContract",
  title: (place: Place) => Html,
  ...lists: ((ctx: ApiContext, request: Request, id: string, place: Place) => Promise<Html>)[]
) {
  return async (ctx: ApiContext, request: Request, operator: Operator): Promise<Html> => {
    const id = pathId(request.params.id);
    const place = await readPlace(ctx, collection, id);
    await recordLook(ctx, operator, `page ${entityType}`, { type: entityType, id });
    const sections: Html[] = [];
    for (const list of lists) sections.push(await list(ctx, request, id, place));
    const main = html`${renderTrail(ctx.config, place)}<h1>${title(place)}</h1>\n${sections}`;
    return layOutForOperators(ctx.config, `${entityType} ${id}`, main);
  };
}

interface ListSection<Name extends ListName> {
  list: Name;
  title: string;
  /** The filter of the list that the page's entity is. */
  of: ListFilter<Name>;
  /** Actions on the page's entity. */
  actions: (place: Place) => readonly (readonly [path: string, label: string])[];
  columns: readonly string[];
  toRow: (item: ListItem<Name>, ctx: ApiContext) => readonly (Html | string)[];
  /** Items on one page. */
  limit?: number;
}

/** A list on an entity's page. The query names the item after which it begins. */
function listOf<Name extends ListName>({ list, title, of, actions, columns, toRow, limit = 100 }: ListSection<Name>) {
  return async (ctx: ApiContext, { query, path }: Request, id: string, place: Place): Promise<Html> => {
    const given = query[list];
    const after = typeof given === "string" && !given.includes("\0") ? given : "";
    const filters = { [of]: id } as Partial<Record<ListFilter<Name>, string>>;
    const { items, nextCursor } = await listCatalog(ctx, list, filters, { after, limit });
    const [, collection = ""] = path.split("/");
    return html`<section aria-labelledby="${list}"><h2 id="${list}">${title}</h2>
${linkActions(ctx.config, [collection, id], ...actions(place))}
${renderTable(
  title,
  columns,
  items.map((item) => toRow(item, ctx)),
)}
${nextCursor === null ? null : html`<p><a rel="next" href="?${list}=${encodeURIComponent(nextCursor)}#${list}">More</a></p>`}</section>`;
  };
}

const PRODUCTS = listOf({
  list: "products",
  title: "Products",
  of: "brand",
  actions: () => [["products/new", "Create a product"]],
  columns: ["Product", "Key", "Type", "Price"],
  toRow: ({ id, name, key, type, priceUsd }, { config }) => [
    html`<a href="${opsPath(config, "products", id)}"><bdi>${name}</bdi></a>`,
    ...[key, type, USD.format(priceUsd)],
  ],
});

const CONTRACTS = listOf({
  list: "contracts",
  title: "Contracts with referrers",
  of: "brand",
  actions: () => [["contracts/new", "Offer a contract"]],
  columns: ["Referrer", "Status", "Offered", "Ends"],
  toRow: ({ id, userId, status, offeredAt, endsAt }, { config }) => [
    html`<a href="${opsPath(config, "contracts", id)}"><bdi>${userId}</bdi></a>`,
    ...[renderStatus(status), renderTime(offeredAt, MINUTES), endsAt === null ? "" : renderTime(endsAt, MINUTES)],
  ],
});

const BATCHES = listOf({
  list: "batches",
  title: "Batches",
  of: "product",
  actions: () => [["batches/new", "Issue a batch"]],
  columns: ["Batch", "Vouchers", "Open to users", "Audience", "Valid until"],
  toRow: ({ id, count, windows, audience, validUntil }, { config }) => [
    ...[linkBatch(config, id), COUNT.format(count), windows.join(", "), audience, renderTime(validUntil, MINUTES)],
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
  columns: ["Link", "QR code", "Product"],
  toRow: ({ code, productId, productName }, { config }) => [
    html`<a href="${config.baseUrl}/r/${code}">${config.baseUrl}/r/${code}</a>`,
    qrCode(`${config.baseUrl}/r/${code}`),
    html`<a href="${opsPath(config, "products", productId)}"><bdi>${productName}</bdi></a>`,
  ],
  // Keeps a page with QR codes below 100 kB.
  limit: 20,
});

/** The pages of brands, products and contracts. */
export const CATALOG_PAGES = {
  "/brands/:id": pageOf("brands", "Brand", ({ brandName }) => html`<bdi>${brandName}</bdi>`, PRODUCTS, CONTRACTS),
  "/products/:id": pageOf("products", "Product", ({ productName }) => html`<bdi>${productName}</bdi>`, BATCHES),
  "/contracts/:id": pageOf(
    "contracts",
    "ReferrerContract",
    ({ userId, contractStatus }) => html`Contract with <bdi>${userId}</bdi> ${renderStatus(String(contractStatus))}`,
    LINKS,
  ),
};
