import type { Reservation } from "../domain/reservation.ts";
import { bigint, integer, orNull, type Row, text, textOf, timestamptz } from "./columns.ts";
import { announceExpiredReservations } from "./outbox.ts";
import type { Queryable } from "./pool.ts";
import {
  columnsOf,
  loadStatements,
  type PreparedStatements,
  prepare,
  readRequiredRow,
  readRows,
} from "./statements.ts";

/** A live reservation. Durations are milliseconds by the database's clock. */
const LIVE_RESERVATION = {
  ticket: text,
  voucherId: text,
  keyId: text,
  expiresAt: timestamptz,
  ageMs: bigint,
  leftMs: bigint,
};

/** The state of a reservation's row. All but Live are final. */
type ReservationState = "Live" | "Consumed" | "Released" | "Expired";

/** A reservation in any state, as operators see it. */
const RESERVATION_RECORD = {
  ticket: text,
  state: textOf<ReservationState>(),
  keyId: text,
  keyLabel: orNull(text),
  startedAt: timestamptz,
  expiresAt: timestamptz,
  endedAt: orNull(timestamptz),
  endReason: orNull(text),
};

export const sql = loadStatements(new URL("./reservations.sql", import.meta.url), {
  open_reservations: {},
  end_reservations: {},
  select_overdue_reservations: { ticket: text, voucherId: text, expiresAt: timestamptz },
  select_live_reservations: LIVE_RESERVATION,
  select_live_tickets: { ticket: text },
  count_live_reservations: { live: integer },
  select_reservations_of_voucher: RESERVATION_RECORD,
});

export interface NewReservation extends Reservation {
  voucherId: string;
  organizationId: string;
}

/** The end of a reservation. */
export interface EndedReservation {
  ticket: string;
  state: Exclude<ReservationState, "Live">;
  reason?: string | null;
}

/** Statements that open reservations of locked vouchers. */
export function openReservations(reservations: readonly NewReservation[]): PreparedStatements {
  if (reservations.length === 0) return [];
  return [
    prepare(
      sql.open_reservations,
      columnsOf(
        reservations,
        "ticket",
        "voucherId",
        "organizationId",
        "keyId",
        "startedAt",
        "expiresAt",
        "tokenSecretId",
      ),
    ),
  ];
}

/** Statements that end Live reservations of locked vouchers, and announce the expired ones. */
export function endReservations(reservations: readonly EndedReservation[], endedAt: Date): PreparedStatements {
  if (reservations.length === 0) return [];
  return [
    prepare(sql.end_reservations, [
      ...columnsOf(reservations, "ticket", "state"),
      reservations.map((reservation) => reservation.reason ?? null),
      endedAt,
    ]),
    ...announceExpiredReservations(reservations.filter(({ state }) => state === "Expired").map(({ ticket }) => ticket)),
  ];
}

/** A position in the order of `expiresAt` and ticket. */
export interface ReservationPosition {
  expiresAt: Date;
  ticket: string;
}

/** The position before all reservations. */
export const FIRST_RESERVATION: ReservationPosition = { expiresAt: new Date(0), ticket: "" };

/** At most `limit` rows after `after` that are past `expiresAt` but still in state Live, in the order of `expiresAt`. */
export function selectOverdueReservations(
  db: Queryable,
  after: ReservationPosition,
  limit: number,
): Promise<(ReservationPosition & { voucherId: string })[]> {
  return readRows(db, sql.select_overdue_reservations, [after.expiresAt, after.ticket, limit]);
}

export type LiveReservation = Row<typeof LIVE_RESERVATION>;

/** At most `limit` live reservations after `after`, in the order of `expiresAt`. */
export function selectLiveReservations(
  db: Queryable,
  after: ReservationPosition,
  limit: number,
): Promise<LiveReservation[]> {
  return readRows(db, sql.select_live_reservations, [after.expiresAt, after.ticket, limit]);
}

/** Returns those of the tickets whose reservation is live. */
export async function selectLiveTickets(db: Queryable, tickets: readonly string[]): Promise<Set<string>> {
  const rows = await readRows(db, sql.select_live_tickets, [tickets]);
  return new Set(rows.map((row) => row.ticket));
}

/** How many reservations are live, counted up to `max`. */
export async function countLiveReservations(db: Queryable, max: number): Promise<number> {
  return (await readRequiredRow(db, sql.count_live_reservations, [max])).live;
}

/** The newest `limit` reservations of a voucher, newest first. */
export function selectReservationsOfVoucher(
  db: Queryable,
  voucherId: string,
  limit: number,
): Promise<Row<typeof RESERVATION_RECORD>[]> {
  return readRows(db, sql.select_reservations_of_voucher, [voucherId, limit]);
}
