import type { RefusalCode } from "./errors.ts";
import { type Hold, liveHold } from "./hold.ts";
import { sameTokenHash } from "./reservation-token.ts";
import { finalRefusal, type VoucherState } from "./voucher.ts";

/** One attempt to burn one voucher, as the queue carries it. */
export interface RedeemRequest {
  /** The queue job's id. */
  attemptId: string;
  voucherId: string;
  organizationId: string;
  keyId: string;
  externalRef: string;
  /** The ticket that the caller named the voucher by, or null when it named the code. */
  ticket: string | null;
  /** SHA-256 of the presented token in hex, or null when none was presented. */
  tokenHash: string | null;
  note: string | null;
  /** Database time in milliseconds after which this attempt must not burn any more. */
  deadlineMs: number;
}

/** The burn that an `externalRef` already stands for. */
export interface Confirmation {
  attemptId: string;
  redeemCode: string;
  redeemedAt: Date;
}

export type RedeemDecision =
  /** Burn now, consuming this hold if there is one. */
  | { kind: "burn"; consumed: Hold | null }
  /** This very attempt has burnt before: a second delivery. */
  | { kind: "burnt_before"; confirmation: Confirmation }
  /** Another attempt has confirmed the reference. */
  | { kind: "confirmed" }
  /** The caller has stopped waiting; nothing is burnt. */
  | { kind: "late" }
  | { kind: "refused"; code: RefusalCode };

/**
 * Decides one burn, in this order: own burn, confirmed reference, deadline, used, voided, expired, ended reservation, wrong
 * token, reserved by someone else. Reads nothing but its arguments; `now` is the database's clock after the voucher's row is
 * locked; `hold` is the voucher's Live row; `expectedTokenHash` yields the hash of that hold's token.
 */
export function decideRedeem(
  voucher: VoucherState,
  hold: Hold | null,
  confirmation: Confirmation | null,
  request: RedeemRequest,
  now: Date,
  expectedTokenHash: (hold: Hold) => string,
): RedeemDecision {
  if (confirmation?.attemptId === request.attemptId) return { kind: "burnt_before", confirmation };
  if (confirmation !== null) return { kind: "confirmed" };
  if (now.getTime() > request.deadlineMs) return { kind: "late" };
  const final = finalRefusal(voucher, now);
  if (final !== null) return { kind: "refused", code: final };
  const live = liveHold(hold, now);
  if (request.ticket !== null && live?.ticket !== request.ticket) return { kind: "refused", code: "reservation_ended" };
  const tokenFits =
    request.tokenHash !== null && live !== null && sameTokenHash(request.tokenHash, expectedTokenHash(live));
  if (request.tokenHash !== null && !tokenFits) return { kind: "refused", code: "token_mismatch" };
  if (live !== null && live.keyId !== request.keyId && !tokenFits) return { kind: "refused", code: "voucher_reserved" };
  return { kind: "burn", consumed: live };
}
