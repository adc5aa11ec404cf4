import type { CatalogList } from "../../acts/db/lists.ts";
import { arrayOf, integer, numeric, orNull, type Row, text, textOf, timestamptz } from "../../platform/db/columns.ts";
import { LATEST, withLatest } from "../../platform/db/database-clock.ts";
import type { Queryable } from "../../platform/db/pool.ts";
import { Statements } from "../../platform/db/statements.ts";
import type { ContractStatus } from "../audience.ts";

const LINKED_PRODUCT = {
  status: textOf<ContractStatus>(),
  endsAt: orNull(timestamptz),
  productId: text,
  productName: text,
  productKey: text,
  brand: text,
  colour: orNull(text),
  logo: orNull(text),
  retailPriceUsd: numeric,
  priceUsd: numeric,
  benefitMonths: integer,
  timeZone: text,
};
export type LinkedProduct = Row<typeof LINKED_PRODUCT>;

export const sql = new Statements(new URL("./contracts.sql", import.meta.url));

/** Returns false if there is no such contract, or if `from` does not list its current status. */
export const moveContract = sql.executeOne("move_contract", {
  id: text,
  status: textOf<ContractStatus>(),
  allowed: arrayOf(textOf<ContractStatus>()),
});
/** The recorded status. A contract that is past its end may still be recorded as Active. */
export const findContractStatus = sql.value("find_contract_status", { status: textOf<ContractStatus>() }, { id: text });
export const endOverdueContracts = withLatest(sql.execute("end_overdue_contracts", { limit: integer, ...LATEST }));
export const insertLink = sql.executeOne("insert_link", { code: text, contractId: text, productId: text });
export const findLinkedProduct = sql.row("find_linked_product", LINKED_PRODUCT, { code: text });
const insertContractRow = sql.execute("insert_contract", {
  id: text,
  brandId: text,
  userId: text,
  endsAt: orNull(timestamptz),
});

/** All contracts. */
export const CONTRACTS = {
  name: "contracts",
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
} as const satisfies CatalogList;

/** All links. */
export const LINKS = {
  name: "links",
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
} as const satisfies CatalogList;

/** Inserts an Offered contract. A unique index rejects a second open contract of the same brand and user. */
export async function insertContract(
  db: Queryable,
  contract: { id: string; brandId: string; userId: string; endsAt: Date | null },
): Promise<void> {
  await insertContractRow(db, {
    id: contract.id,
    brandId: contract.brandId,
    userId: contract.userId,
    endsAt: contract.endsAt,
  });
}
