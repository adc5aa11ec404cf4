/** The name of vouchers in events and addresses. No other entity type has a chain. */
export const ENTITY_TYPE = "VoucherInstance";

export const VOUCHER_TYPES = ["Subscription", "Product", "Service", "Discount"] as const;
export type VoucherType = (typeof VOUCHER_TYPES)[number];

export const AUDIENCES = ["OpenToAll", "ReferrerOnly"] as const;
export type Audience = (typeof AUDIENCES)[number];

/** The status that a voucher's row stores. Redeemed and Voided are final. */
export type StoredStatus = "Active" | "Redeemed" | "Voided";
/**
 * The status that readers see. An Active voucher past `validUntil` is Expired, even before the sweeper has recorded it.
 */
export type VoucherStatus = StoredStatus | "Expired";

/** The stored facts that decide whether a voucher can be reserved, redeemed or voided. */
export interface VoucherState {
  status: StoredStatus;
  validUntil: Date;
}

/** Returns the status at `now`, the database's clock. A voucher is valid until `validUntil`, exclusive. */
export function statusAt(voucher: VoucherState, now: Date): VoucherStatus {
  return voucher.status === "Active" && voucher.validUntil <= now ? "Expired" : voucher.status;
}

const REFUSALS = {
  Active: null,
  Redeemed: "voucher_used",
  Voided: "voucher_voided",
  Expired: "voucher_expired",
} as const satisfies Record<VoucherStatus, string | null>;

/** Whether a voucher is Redeemed or Voided, which never changes. Expired is not stored: the clock decides it. */
export function hasFinalStatus({ status }: VoucherState): boolean {
  return status !== "Active";
}

/** The error code of a voucher that cannot be reserved or redeemed. */
export type VoucherRefusal = NonNullable<(typeof REFUSALS)[VoucherStatus]>;

/**
 * Why a voucher cannot be reserved or redeemed at `now`. Null while it is Active. Only an extension makes an Expired
 * voucher Active again.
 */
export function voucherRefusal(voucher: VoucherState, now: Date): VoucherRefusal | null {
  return REFUSALS[statusAt(voucher, now)];
}

/** What a wanted end does to a voucher. `unchanged`: it has this end. `tooEarly`: the end must be after `floor`. */
export type Extension =
  | { kind: "extended" }
  | { kind: "unchanged" }
  | { kind: "refused"; code: VoucherRefusal }
  | { kind: "tooEarly"; floor: Date };

/** Decides whether a voucher gets another end. Active and Expired ones do, if it is later than their end and `now`. */
export function decideExtension(voucher: VoucherState, validUntil: Date, now: Date): Extension {
  const code = voucherRefusal(voucher, now);
  if (code !== null && code !== "voucher_expired") return { kind: "refused", code };
  if (validUntil.getTime() === voucher.validUntil.getTime()) return { kind: "unchanged" };
  const floor = voucher.validUntil > now ? voucher.validUntil : now;
  return validUntil > floor ? { kind: "extended" } : { kind: "tooEarly", floor };
}

/** The state of a chain as the voucher's row stores it. */
export interface ChainHead {
  lastSequence: number;
  sealedSequence: number;
  sealedHash: string | null;
}
