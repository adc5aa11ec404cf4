import { issueBatch } from "../acts/batch/issue.ts";
import { type CatalogList, type Filters, LISTS, type ListFilter, type ListItem } from "../acts/db/lists.ts";
import { ENTITIES, type EntityKind } from "../acts/entities.ts";
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
  NO_FURTHER,
  type OperatedSite,
  renderSection,
  renderTable,
  renderTrail,
  STACKS,
  USD,
} from "../pages/operator-frame.ts";
import { renderEnd } from "../pages/time.ts";
import { linkActs } from "./actions/forms.ts";
import { sayEmpty } from "./actions/say-empty.ts";
import type { Section } from "./console-part.ts";
import type { Page } from "./visit.ts";

/** The page of an entity, with its parents and sections such as lists of its children. */
export function pageOf<Deps extends object>(
  kind: EntityKind,
  entityType: "Brand" | "Product" | "ReferrerContract",
  name: (lineage: Lineage) => { title: string; heading: Html },
  sections: readonly Section<Deps>[],
): Page<Deps> {
  return async (visit) => {
    const { ctx, site, id, recordVisit } = visit;
    const lineage = await readLineage(ctx, ENTITIES[kind].collection, id);
    await recordVisit(`page ${entityType}`, { type: entityType, id });
    const shown: Html[] = [];
    for (const render of sections) shown.push(await render(visit, lineage));
    // Links no acts on a contract: they depend on its status, so the section with the contract's links shows them.
    const acts = entityType === "Brand" ? linkActs(site, "brand", id) : null;
    const { title, heading } = name(lineage);
    const main = html`${renderTrail(site, lineage)}<h1>${heading}</h1>\n${acts}${shown}`;
    return layOutForOperators(site, title, main);
  };
}

interface ListSection<List extends CatalogList> {
  list: List;
  title: string;
  /** The kind of the page's entity, by whose id the list is filtered. */
  of: ListFilter<List> & EntityKind;
  /** Actions on the page's entity. */
  actions: (lineage: Lineage) => readonly (readonly [path: string, label: string])[];
  columns: readonly string[];
  empty: (site: OperatedSite, id: string, lineage: Lineage) => Html;
  toRow: (item: ListItem<List>, site: Site, seesCredentials: boolean) => readonly (Html | string)[];
  limit?: number;
}

/** A list on an entity's page. A query parameter names the item after which the list begins. */
export function listOf<List extends CatalogList>(section: ListSection<List>): Section {
  const { list, title, of, actions, columns, empty, toRow, limit = 100 } = section;
  const { name } = list;
  return async ({ ctx, site, id, query, seesCredentials }, lineage) => {
    const filters = { [of]: id } as Filters<List>;
    const { items, nextCursor } = await listCatalog(ctx, list, filters, { after: query(name), limit });
    const rows = items.map((item) => toRow(item, site, seesCredentials));
    return renderSection(
      name,
      title,
      linkActions(site, [ENTITIES[of].collection, id], ...actions(lineage)),
      renderTable(title, columns, rows, query(name) === "" ? empty(site, id, lineage) : NO_FURTHER, STACKS),
      linkNext(nextCursor && `?${name}=${encodeURIComponent(nextCursor)}#${name}`),
    );
  };
}

const PRODUCTS = listOf({
  list: LISTS.products,
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

const BATCHES = listOf({
  list: LISTS.batches,
  title: "Batches",
  of: "product",
  actions: () => [["batches/new", "Issue a batch"]],
  empty: (site, id) => sayEmpty(site, "The product has no vouchers yet.", issueBatch, id),
  columns: ["Batch", "Vouchers", "Open to users", "Audience", "Valid until"],
  toRow: ({ id, count, windows, audience, validUntil }, site) => [
    ...[linkTo(site, "batches", id), COUNT.format(count), windows.join(", "), audience, renderEnd(validUntil)],
  ],
});

/** The page of a brand, with the sections that optional features (wings) add. */
export const brandPage = <Deps extends object>(ofWings: readonly Section<Deps>[]): Page<Deps> =>
  pageOf("brand", "Brand", ({ brandName }) => nameOf("Brand", brandName), [PRODUCTS, ...ofWings]);

export const productPage = pageOf("product", "Product", ({ productName }) => nameOf("Product", productName), [BATCHES]);

const nameOf = (noun: string, name: string | null) => {
  return { title: `${noun} ${name}`, heading: html`<bdi>${name}</bdi>` };
};
