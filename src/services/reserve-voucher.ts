import type { ApiContext } from "../context.ts";
import { AppError, refusal } from "../domain/errors.ts";
import type { Hold } from "../domain/hold.ts";
import { isTicket, newId } from "../domain/ids.ts";
import { reservationToken } from "../domain/reservation-token.ts";
import { finalRefusal } from "../domain/voucher.ts";
import type { LeaseHolder } from "../holds/lease.ts";
import type { Caller } from "./caller.ts";
import { type HoldMoveOutcome, voucherBusy } from "./move-holds.ts";
import { resolveVoucher, voucherNotFound } from "./resolve-voucher.ts";

/** The answer to reserve (contract, "Reservation"). `voucher` is the voucher's id. */
export interface ReserveResult {
  ticket: string;
  token: string;
  expiresAt: string;
  voucher: string;
}

/**
 * Holds a voucher for one checkout. The holder's repeat returns its hold unchanged, token included.
 *
 * The lease in Redis turns contenders away before they queue for the row; the row, under its lock and behind a unique index, is
 * the hold. A lease whose row could not be written is given back.
 * @throws AppError `voucher_not_found`, `too_many_misses`, a refusal, `voucher_busy`, `unavailable` when Redis does not answer.
 */
export async function reserveVoucher(
  ctx: Pick<ApiContext, "voucherReads" | "limits" | "leases" | "holdLanes" | "tokenSecrets" | "config" | "log">,
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
  // A lease of the caller's own is another call of it, or an orphan of its last hold: under the row's lock it is decided which.
  if (held !== null && held.keyId !== caller.keyId) throw refusal("voucher_reserved");

  let outcome: HoldMoveOutcome | undefined;
  try {
    outcome = await ctx.holdLanes.submit({
      kind: "open",
      voucherId: voucher.id,
      organizationId: caller.organizationId,
      ...wanted,
      tokenSecretId: ctx.tokenSecrets[0]?.id ?? "",
      seconds: ctx.config.reservationSeconds,
    });
  } finally {
    if (held === null && outcome?.kind !== "opened") await giveLeaseBack(ctx, voucher.id, wanted.ticket);
  }
  switch (outcome.kind) {
    case "opened":
    case "repeated":
      return answerHeld(ctx, caller, voucher.id, outcome.hold);
    case "refused":
      throw refusal(outcome.code);
    default:
      throw voucherBusy();
  }
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
