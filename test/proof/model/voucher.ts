// The right outcome of each call in each state of one voucher. A second, minimal implementation of the service's rules,
// which shares no code with the service. `model.ts` compares sequential calls with it, and
// `../faults/voucher-register.ts` compares overlapping calls.

/** A voucher at one moment. */
export interface Voucher {
  status: "Active" | "Redeemed" | "Voided";
  /** Whether its validity has ended. */
  isOver: boolean;
  isSuspended: boolean;
  hold: { keyId: string; ticket: string } | null;
  /** The reference that redeemed it. */
  redeemedUnder: string | null;
}

/** A call. `by` is the ticket that names the voucher, or null if a code names it. */
export type VoucherCall =
  /** `opens` is the ticket of a new reservation. */
  | { operation: "reserve"; keyId: string; by: string | null; opens: string }
  /** `token` is the ticket of the token's reservation. Any other text stands for a wrong token, null for none. */
  | { operation: "redeem"; keyId: string; externalRef: string; by: string | null; token: string | null }
  | { operation: "release"; ticket: string }
  | { operation: "void" | "suspend" | "resume" }
  /** How the new end compares with the present one, or "past" if it has passed. */
  | { operation: "extend"; to: "later" | "same" | "earlier" | "past" };

/** A refusal's code, or the voucher after the call. A repeat changes nothing. */
export type Outcome = { refusal: string } | { refusal: null; isRepeat: boolean; after: Voucher };

/** The status that answers show. Redeemed and Voided take precedence over Expired, and Expired over Suspended. */
export function statusOf({ status, isOver, isSuspended }: Voucher) {
  if (status !== "Active") return status;
  if (isOver) return "Expired";
  return isSuspended ? "Suspended" : "Active";
}

/** The code that refuses to use a voucher in this status. */
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

/** Decides a reserve. A repeat extends nothing. A ticket whose reservation has ended cannot reserve again. */
function decideReserve(voucher: Voucher, call: VoucherCall & { operation: "reserve" }): Outcome {
  const { hold } = voucher;
  const { keyId, by, opens } = call;
  const final = refusalOf(voucher);
  if (final !== null) return final;
  if (by !== null && hold?.ticket !== by) return refuse("reservation_ended");
  if (hold === null) return change({ ...voucher, hold: { keyId, ticket: opens } });
  return hold.keyId === keyId ? repeat(voucher) : refuse("voucher_reserved");
}

/** Decides a redeem. The reference that has redeemed the voucher gets its answer in every status. */
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

/** Reservation and validity go on. */
function suspend(voucher: Voucher, isSuspended: boolean): Outcome {
  return voucher.isSuspended === isSuspended ? repeat(voucher) : change({ ...voucher, isSuspended });
}

/** An end that has passed is refused in every status. An expired voucher can be extended. */
function decideExtend(voucher: Voucher, to: (VoucherCall & { operation: "extend" })["to"]): Outcome {
  if (to === "past") return refuse("invalid_request");
  const final = refusalOf(voucher, ["Redeemed", "Voided"]);
  if (final !== null) return final;
  if (to === "same") return repeat(voucher);
  return to === "later" ? change({ ...voucher, isOver: false }) : refuse("invalid_request");
}

/** Returns the refusal for the voucher's status, if it is one of `statuses`. By default, any status except Active. */
function refusalOf(voucher: Voucher, statuses = Object.keys(REFUSALS)): Outcome | null {
  const status = statusOf(voucher);
  const code = REFUSALS[status];
  return code !== null && statuses.includes(status) ? refuse(code) : null;
}

const refuse = (refusal: string): Outcome => ({ refusal });
const repeat = (after: Voucher): Outcome => ({ refusal: null, isRepeat: true, after });
const change = (after: Voucher): Outcome => ({ refusal: null, isRepeat: false, after });
