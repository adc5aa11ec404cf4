import { integer, orNull, text, textOf, timestamptz } from "../../../platform/db/columns.ts";
import { LATEST, withLatest } from "../../../platform/db/database-clock.ts";
import type { Queryable } from "../../../platform/db/pool.ts";
import { type PreparedStatements, Statements } from "../../../platform/db/statements.ts";
import { announceExpiredReservations } from "../../chain/db/outbox.ts";
import type { Reservation } from "../../voucher/reservation.ts";

/** The state of a reservation's row. Every state except Live is final. */
type ReservationState = "Live" | "Consumed" | "Released" | "Expired";

export const sql = new Statements(new URL("./reservations.sql", import.meta.url));

export const countLiveReservations = sql.requiredValue(
  "count_live_reservations",
  { live: integer },
  { limit: integer },
);
export const selectReservationsOfVoucher = sql.rows(
  "select_reservations_of_voucher",
  {
    ticket: text,
    state: textOf<ReservationState>(),
    keyId: text,
    keyLabel: orNull(text),
    startedAt: timestamptz,
    expiresAt: timestamptz,
    endedAt: orNull(timestamptz),
    endReason: orNull(text),
  },
  { voucherId: text, limit: integer },
);
export const deleteOldReservations = sql.requiredRow(
  "delete_old_reservations",
  {
    read: integer,
    deleted: integer,
    last: orNull(text),
  },
  { afterTicket: text, beforeTicket: text, endedBefore: timestamptz, limit: integer },
);
const selectOverdue = withLatest(
  sql.rows(
    "select_overdue_reservations",
    { ticket: text, voucherId: text, expiresAt: timestamptz },
    { after: timestamptz, afterTicket: text, limit: integer, ...LATEST },
  ),
);
const endRows = sql.prepareAll(
  "end_reservations",
  { ticket: text, state: text, reason: orNull(text) },
  { endedAt: timestamptz },
);

export interface NewReservation extends Reservation {
  voucherId: string;
  organizationId: string;
}

/** Statements that open reservations of locked vouchers. */
export const openReservations = sql.prepareAll("open_reservations", {
  ticket: text,
  voucherId: text,
  organizationId: text,
  keyId: text,
  startedAt: timestamptz,
  expiresAt: timestamptz,
  tokenSecretId: text,
});

/** The end of a reservation. */
export interface EndedReservation {
  ticket: string;
  state: Exclude<ReservationState, "Live">;
  reason?: string | null;
}

/** Statements that end Live reservations of locked vouchers, and write the expired ones to the outbox. */
export function endReservations(reservations: readonly EndedReservation[], endedAt: Date): PreparedStatements {
  const expired = reservations.filter(({ state }) => state === "Expired").map(({ ticket }) => ticket);
  const ended = reservations.map(({ ticket, state, reason = null }) => ({ ticket, state, reason }));
  return [...endRows(ended, endedAt), ...announceExpiredReservations(expired)];
}

/** A position in the order of `expiresAt` and ticket. */
export interface ReservationPosition {
  expiresAt: Date;
  ticket: string;
}

/** The position before all reservations. */
export const FIRST_RESERVATION: ReservationPosition = { expiresAt: new Date(0), ticket: "" };

/** At most `limit` rows after `after` in state Live past their `expiresAt`, in the order of `expiresAt`. */
export function selectOverdueReservations(db: Queryable, after: ReservationPosition, limit: number) {
  return selectOverdue(db, { after: after.expiresAt, afterTicket: after.ticket, limit });
}
