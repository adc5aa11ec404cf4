import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { AppError, refusal, voucherBusy } from "../../platform/api/errors.ts";
import type { Config } from "../../platform/config.ts";
import type { DeploymentIdentity } from "../../platform/deployment-identity.ts";
import type { Limits } from "../../platform/limits/open-limits.ts";
import { awaitConfirmation, type Confirmations } from "../commit/confirm-reads.ts";
import { proofOf, toRefusal } from "../commit/proofs.ts";
import type { Caller } from "../keys/caller.ts";
import { isTicket, newId } from "../voucher/ids.ts";
import { decideReservation, type Reservation } from "../voucher/reservation.ts";
import { notFound, resolveVoucher, type VoucherReads } from "../voucher/resolve-voucher.ts";
import type { ReserveResponse } from "./api/reserve.ts";
import { type LeaseHolder, type Leases, releaseLease } from "./lease.ts";
import type { ReservationCommitter, ReservationMoveOutcome } from "./reservation-committer.ts";
import { lifetimeSeconds } from "./reservation-lifetime.ts";
import { reservationToken, signingSecret, type TokenSecret } from "./reservation-token.ts";

interface Deps {
  deployment: DeploymentIdentity;
  voucherReads: VoucherReads;
  confirmations: Confirmations;
  limits: Limits;
  leases: Leases;
  reservationCommitter: ReservationCommitter;
  tokenSecrets: readonly TokenSecret[];
  config: Config;
  log: Logger;
}

/** The outcome that a call has found, before {@link proveAndAnswer}. `isCommitted`: the standbys have it. */
type FoundOutcome =
  | { kind: "reserved"; voucherId: string; reservation: Reservation; isCommitted: boolean }
  | { kind: "refused"; error: AppError; isCommitted: boolean }
  /** Another key holds the lease, perhaps without a reservation. */
  | { kind: "leased" };

/**
 * Pauses before further tries of a call that found another key's lease. That key's call usually writes its reservation
 * within milliseconds. Milliseconds.
 */
const LEASED_PAUSES_MS = [10, 30, 80, 200];

/**
 * Reserves a voucher for one checkout. A repeat by the same key returns the same reservation, including its token. The
 * lease in Redis refuses most competing callers before they wait for the voucher's lock. The reservation itself is a
 * row in Postgres. The lock and a unique index guarantee that a voucher has at most one live reservation.
 * @throws AppError of `ERRORS_OF.reserveVoucher`, each with the proof that `proofs.ts` requires. `unavailable` when
 * Redis does not answer.
 */
export async function reserveVoucher(ctx: Deps, caller: Caller, codeOrTicket: string): Promise<ReserveResponse> {
  for (const pauseMs of [0, ...LEASED_PAUSES_MS]) {
    if (pauseMs > 0) await sleep(pauseMs);
    const readFrom = ctx.deployment.serverId;
    const found = await findOrReserve(ctx, caller, codeOrTicket).catch(
      (error): FoundOutcome => refused(toRefusal(error), false),
    );
    if (found.kind !== "leased") return proveAndAnswer(ctx, found, readFrom);
  }
  // A lease may have no reservation, so the refusal only says that the voucher is busy now.
  return proveAndAnswer(ctx, refused(voucherBusy(), false), ctx.deployment.serverId);
}

async function findOrReserve(ctx: Deps, caller: Caller, codeOrTicket: string): Promise<FoundOutcome> {
  const { now, voucher, reservation } = await resolveVoucher(ctx, caller, codeOrTicket);
  if (voucher === null) return refused(notFound(codeOrTicket), false);
  const voucherId = voucher.id;
  const request = {
    namedTicket: isTicket(codeOrTicket) ? codeOrTicket : null,
    ticket: newId("rsv"),
    keyId: caller.keyId,
    tokenSecretId: signingSecret(ctx.tokenSecrets).id,
    seconds: lifetimeSeconds(ctx.config),
  };
  const early = decideReservation(voucher, reservation, request, now);
  if (early.kind !== "opened") return toFoundOutcome(voucherId, early, false);

  const currentHolder = await acquireLease(ctx, voucherId, request, lifetimeSeconds(ctx.config) * 1_000);
  // A lease of the same key belongs to a concurrent call or to an ended reservation. The transaction finds out which.
  if (currentHolder !== null && currentHolder.keyId !== caller.keyId) return { kind: "leased" };

  let outcome: ReservationMoveOutcome | undefined;
  try {
    const { organizationId } = caller;
    outcome = await ctx.reservationCommitter.submit({ kind: "open", voucherId, organizationId, ...request });
  } finally {
    if (currentHolder === null && outcome?.kind !== "opened") await releaseLease(ctx, voucherId, request.ticket);
  }
  return toFoundOutcome(voucherId, outcome, true);
}

function toFoundOutcome(voucherId: string, outcome: ReservationMoveOutcome, isCommitted: boolean): FoundOutcome {
  switch (outcome.kind) {
    case "opened":
    case "repeated":
      return { kind: "reserved", voucherId, reservation: outcome.reservation, isCommitted };
    case "refused":
      return refused(refusal(outcome.code), isCommitted);
    default:
      return refused(voucherBusy(), isCommitted);
  }
}

const refused = (error: AppError, isCommitted: boolean) => ({ kind: "refused" as const, error, isCommitted });

/**
 * Every reserve ends here. Proves the outcome that was found, then answers.
 * @throws AppError the refusal, or `unavailable`.
 */
async function proveAndAnswer(
  ctx: Deps,
  found: Exclude<FoundOutcome, { kind: "leased" }>,
  readFrom: string,
): Promise<ReserveResponse> {
  const needsProof = found.kind === "reserved" || proofOf("reserveVoucher", found.error) !== "none";
  if (needsProof && !found.isCommitted) await awaitConfirmation(ctx, readFrom);
  if (found.kind === "refused") throw found.error;
  const { voucherId, reservation } = found;
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
    throw new AppError("unavailable", (t) => t("inDetail.reservationsUnavailable"), { cause });
  }
}
