import type { ApiContext } from "../context.ts";
import { type EndedHold, endHolds, type NewHold, openHolds } from "../db/reservations.ts";
import type { Decided } from "../db/transaction.ts";
import { type LockedVouchers, readLockedVouchers } from "../db/vouchers.ts";
import { AppError } from "../domain/errors.ts";
import { decideHold, type HoldOutcome, type HoldRequest, liveHold } from "../domain/hold.ts";
import { observeBatches } from "./observe-batches.ts";
import { VoucherLanes } from "./voucher-lanes.ts";

/** A reserve call that has the lease and wants the row, or a release of a ticket. */
export type HoldMove =
  | ({ kind: "open"; voucherId: string; organizationId: string } & HoldRequest)
  | { kind: "release"; voucherId: string; ticket: string; reason: string | null };

export type HoldMoveOutcome = HoldOutcome | { kind: "released" } | { kind: "nothing_live" } | { kind: "busy" };

/** How long a move waits for a voucher's row that something else has locked. Milliseconds. */
const LOCK_WAIT_MS = 3_000;
/** Moves that may wait in one process. */
const WAITING_MAX = 2_000;

export type HoldLanes = VoucherLanes<HoldMove, LockedVouchers, HoldMoveOutcome>;

/** The group commit of holds of an API process. */
export function openHoldLanes(ctx: Pick<ApiContext, "pool" | "metrics" | "traces">): HoldLanes {
  return new VoucherLanes({
    pool: ctx.pool,
    read: (tx, moves) => readLockedVouchers(tx, [...new Set(moves.map((move) => move.voucherId))]),
    decide: moveHolds,
    busy: { kind: "busy" },
    observer: observeBatches(ctx, "holds"),
    lockWaitMs: LOCK_WAIT_MS,
    waitingMax: WAITING_MAX,
  });
}

/** The answer to a move whose voucher's row stayed locked. */
export function voucherBusy(): AppError {
  return new AppError("voucher_busy", "This voucher is being changed at the moment. Please try again.", {
    retryAfterSeconds: 1,
  });
}

/**
 * Decides moves of vouchers that are locked, one after another on the state in memory; all ends and all openings are written at once,
 * unless a row is not what was read: then something moved a hold without the voucher's lock.
 */
async function moveHolds(
  moves: readonly HoldMove[],
  { now, vouchers }: LockedVouchers,
): Promise<Decided<HoldMoveOutcome[]>> {
  const ended: EndedHold[] = [];
  const opened: NewHold[] = [];
  const result = moves.map((move): HoldMoveOutcome => {
    const voucher = vouchers.get(move.voucherId);
    if (voucher === undefined) throw new Error(`the locked voucher ${move.voucherId} was not read`);
    if (move.kind === "release") {
      if (liveHold(voucher.hold, now)?.ticket !== move.ticket) return { kind: "nothing_live" };
      ended.push({ ticket: move.ticket, state: "Released", reason: move.reason });
      voucher.hold = null;
      return { kind: "released" };
    }
    const outcome = decideHold(voucher, voucher.hold, move, now);
    if (outcome.kind === "opened") {
      if (voucher.hold !== null) ended.push({ ticket: voucher.hold.ticket, state: "Expired" });
      opened.push({ ...outcome.hold, voucherId: move.voucherId, organizationId: move.organizationId });
      voucher.hold = outcome.hold;
    }
    return outcome;
  });
  return { result, writes: [...endHolds(ended, now), ...openHolds(opened)] };
}
