import type { RefusalCode } from "./errors.ts";

export const VOUCHER_TYPES = ["Subscription", "Product", "Service", "Discount"] as const;
export type VoucherType = (typeof VOUCHER_TYPES)[number];

export const AUDIENCES = ["OpenToAll", "ReferrerOnly"] as const;
export type Audience = (typeof AUDIENCES)[number];

/** What a voucher's row stores. Redeemed and Voided are final. */
export type StoredStatus = "Active" | "Redeemed" | "Voided";
/** What a reader sees: an Active voucher past its `validUntil` reads Expired, whether or not a job has recorded it. */
export type VoucherStatus = StoredStatus | "Expired";

/** The stored facts that decide whether a voucher can move. */
export interface VoucherState {
  status: StoredStatus;
  validUntil: Date;
}

/** The status at `now`, which is the database's clock. Valid up to, and not at, `validUntil`. */
export function statusAt(voucher: VoucherState, now: Date): VoucherStatus {
  return voucher.status === "Active" && voucher.validUntil <= now ? "Expired" : voucher.status;
}

const REFUSAL_OF: Record<VoucherStatus, RefusalCode | null> = {
  Active: null,
  Redeemed: "voucher_used",
  Voided: "voucher_voided",
  Expired: "voucher_expired",
};

/** Why a voucher cannot move any more, or null while it can. None of these reasons ever goes away. */
export function finalRefusal(voucher: VoucherState, now: Date): RefusalCode | null {
  return REFUSAL_OF[statusAt(voucher, now)];
}
