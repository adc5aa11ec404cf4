/** The name of vouchers in events and addresses. No other entity type has a chain. */
export const ENTITY_TYPE = "VoucherInstance";

export const VOUCHER_TYPES = ["Subscription", "Product", "Service", "Discount"] as const;
export type VoucherType = (typeof VOUCHER_TYPES)[number];

export const AUDIENCES = ["OpenToAll", "ReferrerOnly"] as const;
export type Audience = (typeof AUDIENCES)[number];

/** The kinds of windows. In a `claim` window, users get vouchers for free. In a `buy` window, for a payment. */
export const WINDOW_KINDS = ["claim", "buy"] as const;
export type WindowKind = (typeof WINDOW_KINDS)[number];

/** The opening times of a batch's window. Null means unbounded. */
export interface Window {
  opensAt: Date | null;
  closesAt: Date | null;
}

/** The status that a voucher's row stores. Redeemed and Voided are final. */
export type StoredStatus = "Active" | "Redeemed" | "Voided";
/**
 * The status that readers see. An Active voucher past `validUntil` is shown as Expired, even before the sweeper has
 * recorded it. An Active voucher that has not expired is shown as Suspended if it is suspended, individually or with
 * its batch.
 */
export type VoucherStatus = StoredStatus | "Expired" | "Suspended";

/** The stored facts that decide whether a voucher can be reserved, redeemed or voided. */
export interface VoucherState {
  status: StoredStatus;
  validUntil: Date;
  /** Whether the voucher or its batch is suspended. */
  suspended: boolean;
}

/** Returns the status at `now`, the database's clock. A voucher is valid until `validUntil`, exclusive. */
export function statusAt(voucher: VoucherState, now: Date): VoucherStatus {
  if (voucher.status !== "Active") return voucher.status;
  if (voucher.validUntil <= now) return "Expired";
  return voucher.suspended ? "Suspended" : "Active";
}

const REFUSALS = {
  Active: null,
  Redeemed: "voucher_used",
  Voided: "voucher_voided",
  Expired: "voucher_expired",
  Suspended: "voucher_suspended",
} as const satisfies Record<VoucherStatus, string | null>;

/** Whether a voucher is Redeemed or Voided. These statuses never change. */
export function hasFinalStatus({ status }: Pick<VoucherState, "status">): boolean {
  return status !== "Active";
}

/** The error code of a voucher that cannot be reserved or redeemed. */
export type VoucherRefusal = NonNullable<(typeof REFUSALS)[VoucherStatus]>;

/**
 * Why a voucher cannot be reserved or redeemed at `now`. Null while it is Active. Only an extension makes an Expired
 * voucher Active again. Only a resumption makes a Suspended voucher Active again.
 */
export function voucherRefusal(voucher: VoucherState, now: Date): VoucherRefusal | null {
  return REFUSALS[statusAt(voucher, now)];
}

/**
 * The effect of a requested end of validity. `unchanged`: the voucher has it already. `tooEarly`: not after `floor`.
 */
export type Extension =
  | { kind: "extended" }
  | { kind: "unchanged" }
  | { kind: "refused"; code: VoucherRefusal }
  | { kind: "tooEarly"; floor: Date };

/** Decides whether an Active, Suspended or Expired voucher gets an end later than `now` and than its current end. */
export function decideExtension(voucher: VoucherState, validUntil: Date, now: Date): Extension {
  const code = hasFinalStatus(voucher) ? voucherRefusal(voucher, now) : null;
  if (code !== null) return { kind: "refused", code };
  if (validUntil.getTime() === voucher.validUntil.getTime()) return { kind: "unchanged" };
  const floor = voucher.validUntil > now ? voucher.validUntil : now;
  return validUntil > floor ? { kind: "extended" } : { kind: "tooEarly", floor };
}

/** How a voucher was suspended according to its history: individually (`own`), or with its batch. */
export type Suspension = "own" | "batch";

/** The facts that decide whether a voucher's history lacks an event about the suspension of its batch, and which. */
interface SuspensionState extends Pick<VoucherState, "status"> {
  /** Null if the history contains no suspension, or if a resumption followed the last one. */
  suspension: Suspension | null;
  /** The time since which the batch is suspended. Null if it is not suspended. */
  batchSuspendedAt: Date | null;
}

/**
 * Whether a voucher is suspended with its batch while its history lacks the event. A voucher that was suspended
 * individually stays suspended when its batch is resumed.
 */
export function lacksSuspension(voucher: SuspensionState): boolean {
  return !hasFinalStatus(voucher) && voucher.suspension === null && voucher.batchSuspendedAt !== null;
}

/** Whether a voucher is still suspended only because its history lacks the resumption of its batch. */
export function lacksResumption(voucher: SuspensionState): boolean {
  return !hasFinalStatus(voucher) && voucher.suspension === "batch" && voucher.batchSuspendedAt === null;
}

/** The state of a chain, as stored in the voucher's row. */
export interface ChainHead {
  lastSequence: number;
  sealedSequence: number;
  sealedHash: string | null;
}
