import { PRODUCT } from "../../core/catalog/db/catalog.ts";
import type { Audience, WindowKind } from "../../core/voucher/voucher.ts";
import { arrayOf, boolean, integer, numeric, orNull, text, textOf, timestamptz } from "../../platform/db/columns.ts";
import type { Queryable } from "../../platform/db/pool.ts";
import { Statements } from "../../platform/db/statements.ts";
import type { OperatorRole } from "../operator-role.ts";

export const sql = new Statements(new URL("./lists.sql", import.meta.url));

/** A list of the catalog's entities. */
export interface CatalogList {
  /** The name in sentences, and in addresses of pages. */
  name: string;
  /** The parameters of the list's statement. A list shows only entries that match each parameter that is given. */
  filters: readonly string[];
  /** The column by which the list is ordered. */
  key: string;
  select(db: Queryable, values: never): Promise<object[]>;
}

/** The filters of a list. */
export type ListFilter<List extends CatalogList> = List["filters"][number];
export type ListItem<List extends CatalogList> = Awaited<ReturnType<List["select"]>>[number];
export type Filters<List extends CatalogList> = Readonly<Partial<Record<ListFilter<List>, string>>>;

/** The lists of the core. */
export const LISTS = {
  organizations: {
    name: "organizations",
    filters: ["name"],
    key: "id",
    select: sql.rows(
      "list_organizations",
      { id: text, name: text, sandbox: boolean, createdAt: timestamptz },
      { name: orNull(text), after: text, limit: integer },
    ),
  },
  brands: {
    name: "brands",
    filters: ["org", "name"],
    key: "id",
    select: sql.rows(
      "list_brands",
      { id: text, organizationId: text, name: text, colour: orNull(text), logo: orNull(text), createdAt: timestamptz },
      { org: orNull(text), name: orNull(text), after: text, limit: integer },
    ),
  },
  products: {
    name: "products",
    filters: ["org", "brand", "name"],
    key: "id",
    select: sql.rows(
      "list_products",
      { ...PRODUCT, createdAt: timestamptz },
      { org: orNull(text), brand: orNull(text), name: orNull(text), after: text, limit: integer },
    ),
  },
  batches: {
    name: "batches",
    filters: ["org", "brand", "product", "id"],
    key: "id",
    select: sql.rows(
      "list_batches",
      {
        id: text,
        productId: text,
        productName: text,
        audience: textOf<Audience>(),
        count: integer,
        validUntil: timestamptz,
        priceUsd: numeric,
        windows: arrayOf(textOf<WindowKind>()),
        createdAt: timestamptz,
      },
      {
        org: orNull(text),
        brand: orNull(text),
        product: orNull(text),
        id: orNull(text),
        after: text,
        limit: integer,
      },
    ),
  },
  operators: {
    name: "operators",
    filters: [],
    key: "id",
    select: sql.rows(
      "list_operators",
      {
        id: text,
        name: text,
        role: textOf<OperatorRole>(),
        state: textOf<"Active" | "Expired" | "Revoked">(),
        expiresAt: orNull(timestamptz),
        revokedAt: orNull(timestamptz),
        /** When the last replaced token expires. Null if all have expired. */
        oldTokensUntil: orNull(timestamptz),
      },
      { after: text, limit: integer },
    ),
  },
} as const satisfies Record<string, CatalogList>;

export const findIdsByName = sql.values(
  "find_by_name",
  { id: text },
  { kind: textOf<"org" | "brand" | "product">(), name: text },
);
