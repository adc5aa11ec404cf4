import type { ApiContext } from "../context.ts";
import type { Transaction } from "../db/pool.ts";
import { endHolds, openHolds } from "../db/reservations.ts";
import { readLockedVouchers } from "../db/vouchers.ts";
import { AppError, refusal } from "../domain/errors.ts";
import { decideHold, type Hold, type HoldOutcome, type HoldRequest, liveHold } from "../domain/hold.ts";
import { isTicket, newId } from "../domain/ids.ts";
import { reservationToken } from "../domain/reservation-token.ts";
import { finalRefusal } from "../domain/voucher.ts";
import type { LeaseHolder } from "../holds/lease.ts";
import type { Caller } from "./caller.ts";
import { resolveVoucher, voucherNotFound } from "./resolve-voucher.ts";
import { VoucherLanes } from "./voucher-lanes.ts";

/** The answer to reserve (contract, "Reservation"). `voucher` is the voucher's id. */
export interface ReserveResult {
  ticket: string;
  token: string;
  expiresAt: string;
  voucher: string;
}

/** A reserve call that has the lease and wants the row. */
export interface OpenHold extends HoldRequest {
  voucherId: string;
  organizationId: string;
}

export type OpenHoldOutcome = HoldOutcome | { kind: "busy" };

/** How long a reserve waits for a voucher's row that something else has locked. Milliseconds. */
const LOCK_WAIT_MS = 3_000;
/** Reserves that may wait in one process. */
const WAITING_MAX = 2_000;

/** The group commit of holds of an API process. */
export function openHoldLanes(ctx: Pick<ApiContext, "pool">): VoucherLanes<OpenHold, OpenHoldOutcome> {
  return new VoucherLanes<OpenHold, OpenHoldOutcome>({
    pool: ctx.pool,
    decide: openHoldBatch,
    busy: { kind: "busy" },
    lockWaitMs: LOCK_WAIT_MS,
    waitingMax: WAITING_MAX,
  });
}

/**
 * Holds a voucher for one checkout. The holder's repeat returns its hold unchanged, token included.
 *
 * The lease in Redis turns contenders away before they queue for the row; the row, under its lock and behind a unique index, is
 * the hold. A lease whose row could not be written is given back.
 * @throws AppError `voucher_not_found`, a refusal, `voucher_busy`, `unavailable` when Redis does not answer.
 */
export async function reserveVoucher(
  ctx: Pick<ApiContext, "voucherReads" | "leases" | "holdLanes" | "tokenSecrets" | "config" | "log">,
  caller: Caller,
  codeOrTicket: string,
): Promise<ReserveResult> {
  const { now, voucher, hold } = await resolveVoucher(ctx, caller, codeOrTicket);
  if (voucher === null) throw voucherNotFound();
  const final = finalRefusal(voucher, now);
  if (final !== null) throw refusal(final);
  if (isTicket(codeOrTicket) && hold?.ticket !== codeOrTicket) throw refusal("reservation_ended");
  if (hold !== null) return answerHeld(ctx, caller, voucher.id, hold);

  const lifetimeMs = ctx.config.reservationSeconds * 1_000;
  const wanted: LeaseHolder = { ticket: newId("rsv"), keyId: caller.keyId };
  const held = await acquireLease(ctx, voucher.id, wanted, lifetimeMs);
  if (held !== null && held.keyId !== caller.keyId) throw refusal("voucher_reserved");
  // Another call of the same key is opening this hold right now: both ask for its ticket, and both get it.
  const { ticket } = held ?? wanted;

  let outcome: OpenHoldOutcome | undefined;
  try {
    outcome = await ctx.holdLanes.submit({
      voucherId: voucher.id,
      organizationId: caller.organizationId,
      keyId: caller.keyId,
      ticket,
      tokenSecretId: ctx.tokenSecrets[0]?.id ?? "",
      seconds: ctx.config.reservationSeconds,
    });
  } finally {
    const leaseIsTheHolds = outcome !== undefined && "hold" in outcome && outcome.hold.ticket === ticket;
    if (held === null && !leaseIsTheHolds) await giveLeaseBack(ctx, voucher.id, ticket);
  }
  if (outcome.kind === "refused") throw refusal(outcome.code);
  if (outcome.kind === "busy") {
    throw new AppError("voucher_busy", "This voucher is being changed at the moment. Please try again.", {
      retryAfterSeconds: 1,
    });
  }
  return answerHeld(ctx, caller, voucher.id, outcome.hold);
}

function answerHeld(
  ctx: Pick<ApiContext, "tokenSecrets">,
  caller: Caller,
  voucherId: string,
  hold: Hold,
): ReserveResult {
  if (hold.keyId !== caller.keyId) throw refusal("voucher_reserved");
  return {
    ticket: hold.ticket,
    token: reservationToken(ctx.tokenSecrets, hold.ticket, hold.tokenSecretId),
    expiresAt: hold.expiresAt.toISOString(),
    voucher: voucherId,
  };
}

async function acquireLease(
  ctx: Pick<ApiContext, "leases">,
  voucherId: string,
  wanted: LeaseHolder,
  lifetimeMs: number,
): Promise<LeaseHolder | null> {
  try {
    return await ctx.leases.acquire(voucherId, wanted, lifetimeMs);
  } catch (cause) {
    throw new AppError("unavailable", "Reservations are not available at the moment. Please try again.", {
      cause,
      retryAfterSeconds: 2,
    });
  }
}

/** Gives a lease back. A lease that cannot be given back is an orphan, which stops nobody for more than two seconds. */
export async function giveLeaseBack(
  ctx: Pick<ApiContext, "leases" | "log">,
  voucherId: string,
  ticket: string,
): Promise<void> {
  try {
    await ctx.leases.release(voucherId, ticket);
  } catch (error) {
    ctx.log.warn({ err: error, voucherId }, "a lease could not be given back");
  }
}

/** Decides reserve calls whose vouchers this transaction has locked, one after another, and opens all new holds at once. */
async function openHoldBatch(tx: Transaction, requests: readonly OpenHold[]): Promise<OpenHoldOutcome[]> {
  const { now, vouchers } = await readLockedVouchers(tx, [...new Set(requests.map((request) => request.voucherId))]);
  const stale = [...vouchers.values()].flatMap(({ hold }) =>
    hold !== null && liveHold(hold, now) === null ? [hold.ticket] : [],
  );
  const opened: (OpenHold & Hold)[] = [];
  const outcomes = requests.map((request): HoldOutcome => {
    const voucher = vouchers.get(request.voucherId);
    if (voucher === undefined) throw new Error(`the locked voucher ${request.voucherId} was not read`);
    const outcome = decideHold(voucher, voucher.hold, request, now);
    if (outcome.kind === "opened") {
      opened.push({ ...request, ...outcome.hold });
      // What the next request in this batch must see.
      vouchers.set(voucher.id, { ...voucher, hold: outcome.hold });
    }
    return outcome;
  });
  if (stale.length > 0) await endHolds(tx, stale, now, "Expired");
  if (opened.length > 0) {
    const tickets = await openHolds(tx, opened);
    if (tickets.size !== opened.length) throw new Error("a hold that was decided could not be opened");
  }
  return outcomes;
}
