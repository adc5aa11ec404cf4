import type { Logger } from "pino";
import type { Config } from "../../config.ts";
import { AppError, refusal, voucherBusy, voucherNotFound } from "../../contract/errors.ts";
import type { ReserveResponse } from "../../contract/reserve.ts";
import type { DeploymentIdentity } from "../../domain/deployment.ts";
import { isTicket, newId } from "../../domain/ids.ts";
import type { Reservation } from "../../domain/reservation.ts";
import { reservationToken, signingSecret, type TokenSecret } from "../../domain/reservation-token.ts";
import { finalRefusal } from "../../domain/voucher.ts";
import { type LeaseHolder, type Leases, releaseLease } from "../../holds/lease.ts";
import type { Limits } from "../../limits/open-limits.ts";
import type { Caller } from "../auth/caller.ts";
import { confirmRead, type ReferenceEnds } from "../batches/end-references.ts";
import { resolveVoucher, type VoucherReads } from "../voucher/resolve-voucher.ts";
import type { ReservationCommitter, ReservationMoveOutcome } from "./reservation-committer.ts";

/**
 * Reserves a voucher for one checkout. A repeat by the same key returns its reservation unchanged, token included. The lease in Redis only
 * refuses competing callers before they wait for the voucher's lock. The reservation itself is a row in Postgres. The lock and a unique index
 * guarantee that a voucher has at most one live reservation.
 * @throws AppError `voucher_not_found`, `too_many_misses`, a refusal, `voucher_busy`, `unavailable` when Redis does not answer.
 */
export async function reserveVoucher(
  ctx: {
    deployment: DeploymentIdentity;
    voucherReads: VoucherReads;
    referenceEnds: ReferenceEnds;
    limits: Limits;
    leases: Leases;
    reservationCommitter: ReservationCommitter;
    tokenSecrets: readonly TokenSecret[];
    config: Config;
    log: Logger;
  },
  caller: Caller,
  codeOrTicket: string,
): Promise<ReserveResponse> {
  const readFrom = ctx.deployment.origin;
  const { now, voucher, reservation } = await resolveVoucher(ctx, caller, codeOrTicket);
  if (voucher === null) throw voucherNotFound();
  const final = finalRefusal(voucher, now);
  if (final !== null) throw refusal(final);
  if (isTicket(codeOrTicket) && reservation?.ticket !== codeOrTicket) throw refusal("reservation_ended");
  if (reservation !== null) {
    const response = responseOf(ctx, caller, voucher.id, reservation);
    await confirmRead(ctx, readFrom);
    return response;
  }

  const { id: tokenSecretId } = signingSecret(ctx.tokenSecrets);
  const lifetimeMs = ctx.config.reservationSeconds * 1_000;
  const wanted: LeaseHolder = { ticket: newId("rsv"), keyId: caller.keyId };
  const currentHolder = await acquireLease(ctx, voucher.id, wanted, lifetimeMs);
  // A lease of the caller's own key belongs to a concurrent call or to an ended reservation. The transaction decides which.
  if (currentHolder !== null && currentHolder.keyId !== caller.keyId) throw refusal("voucher_reserved");

  let outcome: ReservationMoveOutcome | undefined;
  try {
    outcome = await ctx.reservationCommitter.submit({
      kind: "open",
      voucherId: voucher.id,
      organizationId: caller.organizationId,
      ...wanted,
      tokenSecretId,
      seconds: ctx.config.reservationSeconds,
    });
  } finally {
    if (currentHolder === null && outcome?.kind !== "opened") await releaseLease(ctx, voucher.id, wanted.ticket);
  }
  switch (outcome.kind) {
    case "opened":
    case "repeated":
      return responseOf(ctx, caller, voucher.id, outcome.reservation);
    case "refused":
      throw refusal(outcome.code);
    default:
      throw voucherBusy();
  }
}

/** The response for a live reservation of the caller's key. @throws AppError `voucher_reserved` for another key's. */
function responseOf(
  ctx: { tokenSecrets: readonly TokenSecret[] },
  caller: Caller,
  voucherId: string,
  reservation: Reservation,
): ReserveResponse {
  if (reservation.keyId !== caller.keyId) throw refusal("voucher_reserved");
  return {
    ticket: reservation.ticket,
    token: reservationToken(ctx.tokenSecrets, reservation.ticket, reservation.tokenSecretId),
    expiresAt: reservation.expiresAt.toISOString(),
    voucher: voucherId,
  };
}

async function acquireLease(
  ctx: { leases: Leases },
  voucherId: string,
  wanted: LeaseHolder,
  lifetimeMs: number,
): Promise<LeaseHolder | null> {
  try {
    return await ctx.leases.acquire(voucherId, wanted, lifetimeMs);
  } catch (cause) {
    throw new AppError("unavailable", "Reservations are not available at the moment. Please try again.", { cause });
  }
}
