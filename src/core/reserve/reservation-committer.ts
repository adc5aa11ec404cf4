import type pg from "pg";
import type { Decided } from "../../platform/db/transaction.ts";
import type { GroupCommitter } from "../commit/group-committer.ts";
import { openVoucherCommitter } from "../commit/voucher-committer.ts";
import { type Observing, observeBatches } from "../metrics/observe-batches.ts";
import { type LockedVouchers, readLockedVouchers } from "../voucher/db/vouchers.ts";
import {
  decideReservation,
  liveReservation,
  type ReservationOutcome,
  type ReservationRequest,
} from "../voucher/reservation.ts";
import { type EndedReservation, endReservations, type NewReservation, openReservations } from "./db/reservations.ts";

/** A call that reserves a voucher, or a call that releases a reservation by its ticket. */
type ReservationMove =
  | ({ kind: "open"; voucherId: string; organizationId: string } & ReservationRequest)
  | { kind: "release"; voucherId: string; organizationId: string; ticket: string; reason: string | null };

export type ReservationMoveOutcome =
  | ReservationOutcome
  | { kind: "released" }
  | { kind: "nothing_live" }
  | { kind: "busy" };

/** Maximum wait for a voucher row that another transaction has locked. Milliseconds. */
const LOCK_WAIT_MS = 3_000;
/** Maximum number of reserve and release calls of one process that may wait for a batch. */
const WAITING_MAX = 2_000;

export type ReservationCommitter = GroupCommitter<ReservationMove, ReservationMoveOutcome>;

/** Opens the group committer for reservations of an API process. */
export function openReservationCommitter(ctx: Observing & { pool: pg.Pool }): ReservationCommitter {
  return openVoucherCommitter({
    pool: ctx.pool,
    read: (tx, moves) => readLockedVouchers(tx, [...new Set(moves.map((move) => move.voucherId))]),
    decide: moveReservations,
    busy: { kind: "busy" },
    observer: observeBatches(ctx, "reservations"),
    lockWaitMs: LOCK_WAIT_MS,
    waitingMax: WAITING_MAX,
    ownerOf: ({ organizationId }) => organizationId,
  });
}

/**
 * Decides reserve and release calls, one after another, on the state in memory. If another transaction has changed the
 * stored state without the voucher's lock, the writes fail.
 */
async function moveReservations(
  moves: readonly ReservationMove[],
  { now, vouchers }: LockedVouchers,
): Promise<Decided<ReservationMoveOutcome[]>> {
  const ended: EndedReservation[] = [];
  const opened: NewReservation[] = [];
  const result = moves.map((move): ReservationMoveOutcome => {
    const voucher = vouchers.get(move.voucherId);
    if (voucher === undefined) throw new Error(`the locked voucher ${move.voucherId} was not read`);
    if (move.kind === "release") {
      if (liveReservation(voucher.reservation, now)?.ticket !== move.ticket) return { kind: "nothing_live" };
      ended.push({ ticket: move.ticket, state: "Released", reason: move.reason });
      voucher.reservation = null;
      return { kind: "released" };
    }
    const outcome = decideReservation(voucher, voucher.reservation, move, now);
    if (outcome.kind === "opened") {
      if (voucher.reservation !== null) ended.push({ ticket: voucher.reservation.ticket, state: "Expired" });
      opened.push({ ...outcome.reservation, voucherId: move.voucherId, organizationId: move.organizationId });
      voucher.reservation = outcome.reservation;
    }
    return outcome;
  });
  return { result, writes: [...endReservations(ended, now), ...openReservations(opened)] };
}
