import { type VoucherRefusal, type VoucherState, voucherRefusal } from "./voucher.ts";

/** A reservation's row in state Live. The reservation is live only until `expiresAt`, by the database's clock. */
export interface Reservation {
  ticket: string;
  keyId: string;
  startedAt: Date;
  expiresAt: Date;
  tokenSecretId: string;
}

/** Returns the reservation if it has not expired at `now`, or null. */
export function liveReservation(reservation: Reservation | null, now: Date): Reservation | null {
  return reservation !== null && reservation.expiresAt > now ? reservation : null;
}

export type ReservationOutcome =
  | { kind: "opened"; reservation: Reservation }
  | { kind: "repeated"; reservation: Reservation }
  | { kind: "refused"; code: VoucherRefusal | "reservation_ended" | "voucher_reserved" };

export interface ReservationRequest {
  /** The ticket with which the caller named the voucher. Null if the caller sent the code. */
  namedTicket: string | null;
  /** The ticket of the new reservation, if one is opened. */
  ticket: string;
  keyId: string;
  tokenSecretId: string;
  /** Duration of the new reservation in seconds. */
  seconds: number;
}

/**
 * Decides one reserve call at `now`. It runs first on state that was read without a lock, and then on state that was
 * read under the voucher's lock. Checks in this order: used, voided, expired, suspended, ended reservation, reserved. A
 * repeat by the same key gets its live reservation. Pure.
 */
export function decideReservation(
  voucher: VoucherState,
  reservation: Reservation | null,
  request: ReservationRequest,
  now: Date,
): ReservationOutcome {
  const final = voucherRefusal(voucher, now);
  if (final !== null) return { kind: "refused", code: final };
  const live = liveReservation(reservation, now);
  if (request.namedTicket !== null && live?.ticket !== request.namedTicket)
    return { kind: "refused", code: "reservation_ended" };
  if (live !== null) {
    return live.keyId === request.keyId
      ? { kind: "repeated", reservation: live }
      : { kind: "refused", code: "voucher_reserved" };
  }
  return {
    kind: "opened",
    reservation: {
      ticket: request.ticket,
      keyId: request.keyId,
      startedAt: now,
      expiresAt: new Date(now.getTime() + request.seconds * 1000),
      tokenSecretId: request.tokenSecretId,
    },
  };
}
