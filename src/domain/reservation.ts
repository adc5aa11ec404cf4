import { type FinalRefusal, finalRefusal, type VoucherState } from "./voucher.ts";

/** Default duration of a reservation. Seconds. */
export const RESERVATION_SECONDS = 900;

/** A reservation's row in state Live. The reservation counts only until `expiresAt`, by the database's clock. */
export interface Reservation {
  ticket: string;
  keyId: string;
  startedAt: Date;
  expiresAt: Date;
  tokenSecretId: string;
}

/** Returns the reservation if it counts at `now`, or null. */
export function liveReservation(reservation: Reservation | null, now: Date): Reservation | null {
  return reservation !== null && reservation.expiresAt > now ? reservation : null;
}

export type ReservationOutcome =
  | { kind: "opened"; reservation: Reservation }
  | { kind: "repeated"; reservation: Reservation }
  | { kind: "refused"; code: FinalRefusal | "voucher_reserved" };

export interface ReservationRequest {
  /** The ticket of the new reservation, if one is opened. */
  ticket: string;
  keyId: string;
  tokenSecretId: string;
  seconds: number;
}

/** Decides one reserve call at `now`, the database's clock under the row lock. A key gets its own live reservation again. Pure. */
export function decideReservation(
  voucher: VoucherState,
  reservation: Reservation | null,
  request: ReservationRequest,
  now: Date,
): ReservationOutcome {
  const final = finalRefusal(voucher, now);
  if (final !== null) return { kind: "refused", code: final };
  const live = liveReservation(reservation, now);
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
