import type { ContractStatus } from "../../core/catalog/audience.ts";
import { PRODUCT } from "../../core/catalog/db/catalog.ts";
import type { WindowKind } from "../../core/catalog/offer.ts";
import type { Audience } from "../../core/voucher/voucher.ts";
import { arrayOf, boolean, integer, numeric, orNull, text, textOf, timestamptz } from "../../platform/db/columns.ts";
import type { Queryable } from "../../platform/db/pool.ts";
import { Statements } from "../../platform/db/statements.ts";
import type { OperatorRole } from "../operator-role.ts";

export const sql = new Statements(new URL("./lists.sql", import.meta.url));

/** Each list with its filters (parameters of its statement), the column by which it is ordered, and its statement. */
export const LISTS = {
  organizations: {
    filters: ["name"],
    key: "id",
    select: sql.rows(
      "list_organizations",
      { id: text, name: text, sandbox: boolean, createdAt: timestamptz },
      { name: orNull(text), after: text, limit: integer },
    ),
  },
  brands: {
    filters: ["org", "name"],
    key: "id",
    select: sql.rows(
      "list_brands",
      { id: text, organizationId: text, name: text, colour: orNull(text), logo: orNull(text), createdAt: timestamptz },
      { org: orNull(text), name: orNull(text), after: text, limit: integer },
    ),
  },
  products: {
    filters: ["org", "brand", "name"],
    key: "id",
    select: sql.rows(
      "list_products",
      { ...PRODUCT, createdAt: timestamptz },
      { org: orNull(text), brand: orNull(text), name: orNull(text), after: text, limit: integer },
    ),
  },
  batches: {
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
  listings: {
    filters: ["org", "product", "batch"],
    key: "id",
    select: sql.rows(
      "list_listings",
      {
        id: text,
        batchId: text,
        productId: text,
        productName: text,
        audience: textOf<Audience>(),
        validUntil: timestamptz,
        createdAt: timestamptz,
      },
      { org: orNull(text), product: orNull(text), batch: orNull(text), after: text, limit: integer },
    ),
  },
  contracts: {
    filters: ["org", "brand", "user", "status"],
    key: "id",
    select: sql.rows(
      "list_contracts",
      {
        id: text,
        brandId: text,
        brand: text,
        userId: text,
        status: textOf<ContractStatus>(),
        endsAt: orNull(timestamptz),
        offeredAt: timestamptz,
      },
      {
        org: orNull(text),
        brand: orNull(text),
        user: orNull(text),
        status: orNull(text),
        after: text,
        limit: integer,
      },
    ),
  },
  links: {
    filters: ["org", "contract", "product", "user"],
    key: "code",
    select: sql.rows(
      "list_links",
      {
        code: text,
        contractId: text,
        productId: text,
        productName: text,
        userId: text,
        createdAt: timestamptz,
      },
      {
        org: orNull(text),
        contract: orNull(text),
        product: orNull(text),
        user: orNull(text),
        after: text,
        limit: integer,
      },
    ),
  },
  operators: {
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
} as const;

export type ListName = keyof typeof LISTS;
/** The filters of a list. */
export type ListFilter<Name extends ListName> = (typeof LISTS)[Name]["filters"][number];
export type ListItem<Name extends ListName> = Awaited<ReturnType<(typeof LISTS)[Name]["select"]>>[number];

/**
 * At most `limit` items of a list that follow the key `after`, in the order of the list's key. A filter that is not
 * given matches every item.
 */
export async function selectList<Name extends ListName>(
  db: Queryable,
  name: Name,
  filters: Readonly<Partial<Record<ListFilter<Name>, string>>>,
  after: string,
  limit: number,
): Promise<ListItem<Name>[]> {
  const absent = Object.fromEntries(LISTS[name].filters.map((filter) => [filter, null]));
  const select = LISTS[name].select as (db: Queryable, values: object) => Promise<ListItem<Name>[]>;
  return select(db, { ...absent, ...filters, after, limit });
}

export const findIdsByName = sql.values(
  "find_by_name",
  { id: text },
  { kind: textOf<"org" | "brand" | "product">(), name: text },
);
const findUnknown = sql.row(
  "find_unknown_filter",
  { kind: text, id: text },
  { org: orNull(text), brand: orNull(text), product: orNull(text), batch: orNull(text), contract: orNull(text) },
);

/** Returns an id in the filters that does not exist, with its kind. Null if all ids exist. */
export function findUnknownFilter(db: Queryable, filters: Readonly<Record<string, string | undefined>>) {
  const { org = null, brand = null, product = null, batch = null, contract = null } = filters;
  return findUnknown(db, { org, brand, product, batch, contract });
}
