import type { ContractStatus, MemberRole } from "../domain/audience.ts";
import { integer, numeric, orNull, type Row, text, textOf, timestamptz } from "./columns.ts";
import type { Queryable } from "./pool.ts";
import { execute, loadStatements, readRow } from "./statements.ts";

const LINKED_PRODUCT = {
  status: textOf<ContractStatus>(),
  endsAt: orNull(timestamptz),
  productId: text,
  productName: text,
  brand: text,
  retailPriceUsd: numeric,
  benefitMonths: integer,
};

export const sql = loadStatements(new URL("./contracts.sql", import.meta.url), {
  insert_member: {},
  insert_contract: {},
  move_contract: {},
  find_contract_status: { status: textOf<ContractStatus>() },
  end_overdue_contracts: {},
  insert_link: {},
  find_linked_product: LINKED_PRODUCT,
});

/** Makes a user a member of an organization, or changes their role. */
export async function insertMember(
  db: Queryable,
  organizationId: string,
  userId: string,
  role: MemberRole,
): Promise<void> {
  await execute(db, sql.insert_member, [organizationId, userId, role]);
}

/** Inserts a contract with the status Offered. A unique index rejects a second open contract of the same brand and user. */
export async function insertContract(
  db: Queryable,
  contract: { id: string; brandId: string; userId: string; endsAt: Date | null },
): Promise<void> {
  await execute(db, sql.insert_contract, [contract.id, contract.brandId, contract.userId, contract.endsAt]);
}

/** Changes a contract's status; returns false when it does not exist or its current status is not in `from`. */
export async function moveContract(
  db: Queryable,
  id: string,
  to: ContractStatus,
  from: readonly ContractStatus[],
): Promise<boolean> {
  return (await execute(db, sql.move_contract, [id, to, from])) === 1;
}

/** A contract's recorded status, or null. */
export async function findContractStatus(db: Queryable, id: string): Promise<ContractStatus | null> {
  return (await readRow(db, sql.find_contract_status, [id]))?.status ?? null;
}

/** Sets at most `limit` Active contracts whose `endsAt` has passed to Ended; returns how many. */
export function endOverdueContracts(db: Queryable, limit: number): Promise<number> {
  return execute(db, sql.end_overdue_contracts, [limit]);
}

/** Inserts a referral link; returns false unless contract and product exist and belong to the same brand. */
export async function insertLink(db: Queryable, code: string, contractId: string, productId: string): Promise<boolean> {
  return (await execute(db, sql.insert_link, [code, contractId, productId])) === 1;
}

/** The product that a referral link offers, with the status and end of the link's contract. */
export type LinkedProduct = Row<typeof LINKED_PRODUCT>;

/** The product of the referral link with this code, or null. */
export function findLinkedProduct(db: Queryable, code: string): Promise<LinkedProduct | null> {
  return readRow(db, sql.find_linked_product, [code]);
}
