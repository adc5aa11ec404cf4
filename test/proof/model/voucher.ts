// What is right for one voucher: the outcome of each call in each state. A minimal second implementation of the
// service's rules, which shares no code with it. `model.ts` compares sequential calls with it, and
// `../faults/voucher-register.ts` overlapping ones.

/** A voucher at one moment. */
export interface Voucher {
  status: "Active" | "Redeemed" | "Voided";
  /** Whether its validity has ended. */
  isOver: boolean;
  isSuspended: boolean;
  /** Its live reservation. */
  hold: { keyId: string; ticket: string } | null;
  /** The reference that redeemed it. */
  redeemedUnder: string | null;
}

/** A call. `by` is the ticket with which it names the voucher, or null for the code. */
export type VoucherCall =
  /** `opens` is the ticket of a new reservation. */
  | { operation: "reserve"; keyId: string; by: string | null; opens: string }
  /** `token` is the ticket of the token's reservation, any other text for a wrong token, or null for none. */
  | { operation: "redeem"; keyId: string; externalRef: string; by: string | null; token: string | null }
  | { operation: "release"; ticket: string }
  | { operation: "void" | "suspend" | "resume" }
  /** How the new end relates to the present one, or that it has passed. */
  | { operation: "extend"; to: "later" | "same" | "earlier" | "past" };

/** A refusal by its code, or the voucher after the call. A repeat changes nothing. */
export type Outcome = { refusal: string } | { refusal: null; isRepeat: boolean; after: Voucher };

/** The status in answers. Redeemed and Voided come before Expired, and Expired before Suspended. */
export function statusOf({ status, isOver, isSuspended }: Voucher) {
  if (status !== "Active") return status;
  if (isOver) return "Expired";
  return isSuspended ? "Suspended" : "Active";
}

/** Why a voucher in this status cannot be used. */
const REFUSALS = {
  Active: null,
  Redeemed: "voucher_used",
  Voided: "voucher_voided",
  Expired: "voucher_expired",
  Suspended: "voucher_suspended",
} as const;

export function decide(voucher: Voucher, call: VoucherCall): Outcome {
  switch (call.operation) {
    case "reserve":
      return decideReserve(voucher, call);
    case "redeem":
      return decideRedeem(voucher, call);
    case "release":
      return voucher.hold?.ticket === call.ticket ? change({ ...voucher, hold: null }) : refuse("nothing_released");
    case "void":
      return (
        refusalOf(voucher, ["Redeemed", "Voided", "Expired"]) ?? change({ ...voucher, status: "Voided", hold: null })
      );
    case "suspend":
    case "resume":
      return refusalOf(voucher, ["Redeemed", "Voided"]) ?? suspend(voucher, call.operation === "suspend");
    case "extend":
      return decideExtend(voucher, call.to);
  }
}

/** A repeat extends nothing. An ended ticket cannot be reserved again. */
function decideReserve(voucher: Voucher, call: VoucherCall & { operation: "reserve" }): Outcome {
  const { hold } = voucher;
  const { keyId, by, opens } = call;
  const final = refusalOf(voucher);
  if (final !== null) return final;
  if (by !== null && hold?.ticket !== by) return refuse("reservation_ended");
  if (hold === null) return change({ ...voucher, hold: { keyId, ticket: opens } });
  return hold.keyId === keyId ? repeat(voucher) : refuse("voucher_reserved");
}

/** A confirmed reference is answered before the voucher is checked. */
function decideRedeem(voucher: Voucher, call: VoucherCall & { operation: "redeem" }): Outcome {
  const { hold } = voucher;
  const { keyId, externalRef, by, token } = call;
  if (voucher.redeemedUnder === externalRef) return repeat(voucher);
  const final = refusalOf(voucher);
  if (final !== null) return final;
  if (by !== null && hold?.ticket !== by) return refuse("reservation_ended");
  if (token !== null && hold?.ticket !== token) return refuse("token_mismatch");
  if (hold !== null && hold.keyId !== keyId && token === null) return refuse("voucher_reserved");
  return change({ ...voucher, status: "Redeemed", hold: null, redeemedUnder: externalRef });
}

/** The reservation and the validity continue. */
function suspend(voucher: Voucher, isSuspended: boolean): Outcome {
  return voucher.isSuspended === isSuspended ? repeat(voucher) : change({ ...voucher, isSuspended });
}

/** An end that has passed is refused before the voucher is read. An expired voucher can be extended. */
function decideExtend(voucher: Voucher, to: (VoucherCall & { operation: "extend" })["to"]): Outcome {
  if (to === "past") return refuse("invalid_request");
  const final = refusalOf(voucher, ["Redeemed", "Voided"]);
  if (final !== null) return final;
  if (to === "same") return repeat(voucher);
  return to === "later" ? change({ ...voucher, isOver: false }) : refuse("invalid_request");
}

/** The refusal because of the voucher's status, if it is one of `statuses`. By default, any status except Active. */
function refusalOf(voucher: Voucher, statuses = Object.keys(REFUSALS)): Outcome | null {
  const status = statusOf(voucher);
  const code = REFUSALS[status];
  return code !== null && statuses.includes(status) ? refuse(code) : null;
}

const refuse = (refusal: string): Outcome => ({ refusal });
const repeat = (after: Voucher): Outcome => ({ refusal: null, isRepeat: true, after });
const change = (after: Voucher): Outcome => ({ refusal: null, isRepeat: false, after });
