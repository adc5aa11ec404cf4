import type { Audience } from "../core/voucher/voucher.ts";

/** The stored statuses of a referrer contract. */
export const CONTRACT_STATUSES = ["Offered", "Active", "Ended", "Declined"] as const;
export type ContractStatus = (typeof CONTRACT_STATUSES)[number];

/** The statuses from which a contract can change to each status. */
export const CONTRACT_MOVES = {
  Active: ["Offered"],
  Declined: ["Offered"],
  Ended: ["Active"],
} as const satisfies Partial<Record<ContractStatus, readonly ContractStatus[]>>;

/** The facts of a contract that decide whether it is in force. */
interface Contract {
  id: string;
  status: ContractStatus;
  endsAt: Date | null;
}

/** A caller's relations to a brand. They decide whether the brand's `ReferrerOnly` batches are open to the caller. */
export interface Eligibility {
  /** Whether the caller is a member with role `owner` of the brand's organization. */
  isOwner: boolean;
  contract: Contract | null;
}

/** The rule that opened a batch to a user. The event of the acquisition records it. */
export type AudienceRule = "open_to_all" | "brand_owner" | "active_contract" | "referral_link";

/** Whether a contract is in force at `now`: Active and before `endsAt`, even if its end has not been recorded yet. */
export function isContractActive(contract: Pick<Contract, "status" | "endsAt">, now: Date): boolean {
  return contract.status === "Active" && (contract.endsAt === null || contract.endsAt > now);
}

/**
 * Returns the rule that opens a batch to a caller, or null. A `ReferrerOnly` batch is open only to an owner or to a
 * user with a contract in force.
 */
export function audienceRule(audience: Audience, eligibility: Eligibility, now: Date): AudienceRule | null {
  if (audience === "OpenToAll") return "open_to_all";
  if (eligibility.isOwner) return "brand_owner";
  if (eligibility.contract !== null && isContractActive(eligibility.contract, now)) return "active_contract";
  return null;
}
