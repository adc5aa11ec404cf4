import type { ContractStatus } from "../domain/audience.ts";
import type { WindowKind } from "../domain/offer.ts";
import type { Audience } from "../domain/voucher.ts";
import { PRODUCT } from "./catalog.ts";
import {
  arrayOf,
  boolean,
  type Columns,
  integer,
  numeric,
  orNull,
  type Row,
  text,
  textOf,
  timestamptz,
} from "./columns.ts";
import type { Queryable } from "./pool.ts";
import { loadStatements, readRow, readRows, type TypedStatement } from "./statements.ts";

/** Statements that list the catalog for operators. None of them reads vouchers, reservations, redemptions or events. */
export const sql = loadStatements(new URL("./lists.sql", import.meta.url), {
  list_organizations: { id: text, name: text, sandbox: boolean, createdAt: timestamptz },
  list_brands: { id: text, organizationId: text, name: text, createdAt: timestamptz },
  list_products: { ...PRODUCT, createdAt: timestamptz },
  list_batches: {
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
  list_listings: {
    id: text,
    batchId: text,
    productId: text,
    productName: text,
    audience: textOf<Audience>(),
    validUntil: timestamptz,
    createdAt: timestamptz,
  },
  list_contracts: {
    id: text,
    brandId: text,
    brand: text,
    userId: text,
    status: textOf<ContractStatus>(),
    endsAt: orNull(timestamptz),
    offeredAt: timestamptz,
  },
  list_links: {
    code: text,
    contractId: text,
    productId: text,
    productName: text,
    userId: text,
    createdAt: timestamptz,
  },
  find_by_name: { id: text },
  find_unknown_filter: { kind: text, id: text },
});

/** Each list: its statement, its filters in the order of the statement's parameters, and the column that orders it. */
export const LISTS = {
  organizations: { statement: sql.list_organizations, filters: ["name"], key: "id" },
  brands: { statement: sql.list_brands, filters: ["org", "name"], key: "id" },
  products: { statement: sql.list_products, filters: ["org", "brand", "name"], key: "id" },
  batches: { statement: sql.list_batches, filters: ["org", "brand", "product"], key: "id" },
  listings: { statement: sql.list_listings, filters: ["org", "product", "batch"], key: "id" },
  contracts: { statement: sql.list_contracts, filters: ["brand", "user", "status"], key: "id" },
  links: { statement: sql.list_links, filters: ["contract", "product", "user"], key: "code" },
} as const;

export type ListName = keyof typeof LISTS;
/** The filters of a list. */
export type ListFilter<Name extends ListName> = (typeof LISTS)[Name]["filters"][number];
export type ListItem<Name extends ListName> = Row<(typeof LISTS)[Name]["statement"]["columns"]>;

/** At most `limit` items of a list that follow the key `after`, in the order of the list's key. An absent filter matches every item. */
export async function selectList<Name extends ListName>(
  db: Queryable,
  name: Name,
  filters: Readonly<Partial<Record<ListFilter<Name>, string>>>,
  after: string,
  limit: number,
): Promise<ListItem<Name>[]> {
  const { statement, filters: names }: { statement: TypedStatement<Columns>; filters: readonly string[] } = LISTS[name];
  const given: Readonly<Record<string, string | undefined>> = filters;
  const values = names.map((filter) => given[filter] ?? null);
  return (await readRows(db, statement, [...values, after, limit])) as ListItem<Name>[];
}

/** The ids of organizations, brands or products with a name, compared without case; at most ten. */
export async function findIdsByName(db: Queryable, kind: "org" | "brand" | "product", name: string): Promise<string[]> {
  return (await readRows(db, sql.find_by_name, [kind, name])).map(({ id }) => id);
}

/** Returns an id among the filters that does not exist, with its kind, or null if all exist. */
export function findUnknownFilter(
  db: Queryable,
  filters: Readonly<Record<string, string | undefined>>,
): Promise<{ kind: string; id: string } | null> {
  const ids = [filters.org, filters.brand, filters.product, filters.batch, filters.contract].map((id) => id ?? null);
  return readRow(db, sql.find_unknown_filter, ids);
}
