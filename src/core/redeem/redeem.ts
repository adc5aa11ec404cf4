import { sameTokenHash } from "../reserve/reservation-token.ts";
import { liveReservation, type Reservation } from "../voucher/reservation.ts";
import { type VoucherRefusal, type VoucherState, voucherRefusal } from "../voucher/voucher.ts";

/** The facts about an attempt to redeem that decide its result. */
export interface RedeemAttempt {
  /** The queue job's id. */
  attemptId: string;
  keyId: string;
  /** The ticket that the request contains, or null if it contains the code. */
  ticket: string | null;
  /** SHA-256 of the presented token in hex, or null if none was presented. */
  tokenHash: string | null;
  /** Whether the reference was ended after the attempt's first read, so a response said that nothing is redeemed. */
  isEnded: boolean;
  /**
   * Whether the redemption would exceed the key's daily limit. Set by a worker that knows the limit. The trigger
   * `redemptions_checked` in the database enforces the limit in any case.
   */
  isOverCap?: boolean;
  /** The attempt must not redeem after this time of the database's clock. Milliseconds since 1970. */
  deadlineMs: number;
}

/** A redemption that already exists under the attempt's `externalRef`. */
export interface Confirmation {
  attemptId: string;
  redeemCode: string;
  redeemedAt: Date;
}

export type RedeemDecision =
  /** Redeem now, and consume this reservation if it is not null. */
  | { kind: "redeem"; consumed: Reservation | null }
  /** This attempt has already redeemed: its job was delivered twice. */
  | { kind: "redeemed_before"; confirmation: Confirmation }
  /** Another attempt has redeemed a voucher with this reference. */
  | { kind: "confirmed" }
  /** The reference was ended or the deadline has passed. Nothing is redeemed. */
  | { kind: "late" }
  | { kind: "refused"; code: VoucherRefusal | "reservation_ended" | "token_mismatch" | "voucher_reserved" }
  /** The key has reached its daily limit. */
  | { kind: "over_cap" };

/**
 * Decides one attempt to redeem. Checks in this order: redeemed by this attempt, redeemed under the reference, ended
 * reference, deadline, used, voided, expired, suspended, ended reservation, wrong token, reserved by another key, daily
 * limit. Pure.
 * @param reservation the voucher's reservation in state Live, or null. It may have expired.
 * @param now the database's clock, read after the voucher's row was locked.
 * @param expectedTokenHash returns the hash of a reservation's token.
 */
export function decideRedeem(
  voucher: VoucherState,
  reservation: Reservation | null,
  confirmation: Confirmation | null,
  attempt: RedeemAttempt,
  now: Date,
  expectedTokenHash: (reservation: Reservation) => string,
): RedeemDecision {
  if (confirmation?.attemptId === attempt.attemptId) return { kind: "redeemed_before", confirmation };
  if (confirmation !== null) return { kind: "confirmed" };
  if (attempt.isEnded || now.getTime() > attempt.deadlineMs) return { kind: "late" };
  const final = voucherRefusal(voucher, now);
  if (final !== null) return { kind: "refused", code: final };
  const live = liveReservation(reservation, now);
  if (attempt.ticket !== null && live?.ticket !== attempt.ticket) return { kind: "refused", code: "reservation_ended" };
  const tokenMatches =
    attempt.tokenHash !== null && live !== null && sameTokenHash(attempt.tokenHash, expectedTokenHash(live));
  if (attempt.tokenHash !== null && !tokenMatches) return { kind: "refused", code: "token_mismatch" };
  if (live !== null && live.keyId !== attempt.keyId && !tokenMatches)
    return { kind: "refused", code: "voucher_reserved" };
  if (attempt.isOverCap) return { kind: "over_cap" };
  return { kind: "redeem", consumed: live };
}
