import type { Audience } from "./voucher.ts";

/** Recorded states of a referrer contract (contract, "Referrer contract"). */
export type ContractStatus = "Offered" | "Active" | "Ended" | "Declined";

/** What a member is to an organization. */
export const MEMBER_ROLES = ["owner", "employee"] as const;
export type MemberRole = (typeof MEMBER_ROLES)[number];

/** The states that each move of a contract starts from. */
export const CONTRACT_MOVES = {
  Active: ["Offered"],
  Declined: ["Offered"],
  Ended: ["Active"],
} as const satisfies Partial<Record<ContractStatus, readonly ContractStatus[]>>;

/** A contract as far as it decides something. */
export interface Contract {
  id: string;
  status: ContractStatus;
  endsAt: Date | null;
}

/** What a caller is to a brand. Nobody in particular: `{ isOwner: false, contract: null }`. */
export interface Standing {
  /** A member with role `owner` of the brand's organization. */
  isOwner: boolean;
  /** The caller's contract with this very brand that is Active, if there is one. */
  contract: Contract | null;
}

/** Why supply was open to whoever took it; written into the event. */
export type AudienceRule = "open_to_all" | "brand_owner" | "active_contract" | "referral_link";

/** Whether a contract opens supply at `now`: Active, and not at or past its end, recorded or not. */
export function isContractActive(contract: Pick<Contract, "status" | "endsAt">, now: Date): boolean {
  return contract.status === "Active" && (contract.endsAt === null || contract.endsAt > now);
}

/** The rule by which a batch is open to a caller from a window, or null when it is not (contract, "Referrer-only rules"). */
export function audienceRule(audience: Audience, standing: Standing, now: Date): AudienceRule | null {
  if (audience === "OpenToAll") return "open_to_all";
  if (standing.isOwner) return "brand_owner";
  if (standing.contract !== null && isContractActive(standing.contract, now)) return "active_contract";
  return null;
}
