import type { ContractStatus, MemberRole } from "../domain/audience.ts";
import type { Queryable } from "./pool.ts";
import { bind, loadStatements } from "./statements.ts";

const sql = loadStatements(new URL("./contracts.sql", import.meta.url), [
  "insert_member",
  "insert_contract",
  "move_contract",
  "find_contract_status",
  "end_overdue_contracts",
  "insert_link",
  "find_link",
]);

/** Makes a user a member of an organization, or changes their role. */
export async function insertMember(
  db: Queryable,
  organizationId: string,
  userId: string,
  role: MemberRole,
): Promise<void> {
  await db.query(bind(sql.insert_member, [organizationId, userId, role]));
}

/** Offers a contract. The index of open contracts refuses a second one for the same brand and user. */
export async function insertContract(
  db: Queryable,
  contract: { id: string; brandId: string; userId: string; endsAt: Date | null },
): Promise<void> {
  await db.query(bind(sql.insert_contract, [contract.id, contract.brandId, contract.userId, contract.endsAt]));
}

/** Moves a contract from one of several states; false when it is in none of them or does not exist. */
export async function moveContract(
  db: Queryable,
  id: string,
  to: ContractStatus,
  from: readonly ContractStatus[],
): Promise<boolean> {
  const { rowCount } = await db.query(bind(sql.move_contract, [id, to, from]));
  return rowCount === 1;
}

/** A contract's recorded status, or null. */
export async function findContractStatus(db: Queryable, id: string): Promise<ContractStatus | null> {
  const { rows } = await db.query<{ status: ContractStatus }>(bind(sql.find_contract_status, [id]));
  return rows[0]?.status ?? null;
}

/** Records the end of at most `limit` contracts that are past it; returns how many. */
export async function endOverdueContracts(db: Queryable, limit: number): Promise<number> {
  const { rowCount } = await db.query(bind(sql.end_overdue_contracts, [limit]));
  return rowCount ?? 0;
}

/** Makes a referral link; false when contract and product are not both there and of one brand. */
export async function insertLink(db: Queryable, code: string, contractId: string, productId: string): Promise<boolean> {
  const { rowCount } = await db.query(bind(sql.insert_link, [code, contractId, productId]));
  return rowCount === 1;
}

/** A referral link and the contract behind it. */
export interface ReferralLink {
  productId: string;
  contractId: string;
  referrerId: string;
  status: ContractStatus;
  endsAt: Date | null;
}

/** The link of a code, or null. */
export async function findLink(db: Queryable, code: string): Promise<ReferralLink | null> {
  const { rows } = await db.query<{
    product_id: string;
    contract_id: string;
    referrer_id: string;
    status: ContractStatus;
    ends_at: Date | null;
  }>(bind(sql.find_link, [code]));
  const row = rows[0];
  if (row === undefined) return null;
  return {
    productId: row.product_id,
    contractId: row.contract_id,
    referrerId: row.referrer_id,
    status: row.status,
    endsAt: row.ends_at,
  };
}
