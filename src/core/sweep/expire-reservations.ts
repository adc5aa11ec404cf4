import type pg from "pg";
import { readThenWrite } from "../../platform/db/transaction.ts";
import {
  type EndedReservation,
  endReservations,
  FIRST_RESERVATION,
  type ReservationPosition,
  selectOverdueReservations,
} from "../reserve/db/reservations.ts";
import { lockFreeVouchers, readLockedVouchers } from "../voucher/db/vouchers.ts";
import { liveReservation } from "../voucher/reservation.ts";

/** Maximum number of reservations that one transaction ends. */
const BATCH_MAX = 500;

/**
 * Records the end of reservations past `expiresAt` and returns their number. Skips locked vouchers: the transaction
 * that has the lock, or the next pass, records the end of their reservations. No decision depends on this record.
 */
export async function expireReservations(ctx: { pool: pg.Pool }, untilMs: number): Promise<number> {
  let count = 0;
  let after: ReservationPosition = FIRST_RESERVATION;
  do {
    const overdue = await selectOverdueReservations(ctx.pool, after, BATCH_MAX);
    const last = overdue.at(-1);
    if (last === undefined) return count;
    after = last;
    count += await endOverdue(ctx, [...new Set(overdue.map((reservation) => reservation.voucherId))]);
  } while (performance.now() < untilMs);
  return count;
}

/** Ends the overdue reservations of these vouchers, and returns their number. */
function endOverdue(ctx: { pool: pg.Pool }, voucherIds: readonly string[]): Promise<number> {
  return readThenWrite(
    ctx.pool,
    (tx) => Promise.all([lockFreeVouchers(tx, voucherIds), readLockedVouchers(tx, voucherIds)]),
    async ([locked, { now, vouchers }]) => {
      const expired = [...vouchers.values()].flatMap(({ id, reservation }): EndedReservation[] =>
        locked.has(id) && reservation !== null && liveReservation(reservation, now) === null
          ? [{ ticket: reservation.ticket, state: "Expired" }]
          : [],
      );
      return { result: expired.length, writes: endReservations(expired, now) };
    },
  );
}
