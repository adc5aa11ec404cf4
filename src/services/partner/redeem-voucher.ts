import type { Logger } from "pino";
import type { Config } from "../../config.ts";
import { AppError, refusal, voucherBusy, voucherNotFound } from "../../contract/errors.ts";
import { pickFields } from "../../contract/fields.ts";
import type { RedeemJob, RedeemReply } from "../../contract/jobs.ts";
import { type RedeemResponse, redeemResponse } from "../../contract/redeem.ts";
import type { Redemption } from "../../db/redemptions.ts";
import type { Voucher } from "../../db/vouchers.ts";
import { normaliseCode } from "../../domain/codes.ts";
import { isTicket } from "../../domain/ids.ts";
import { hashToken } from "../../domain/reservation-token.ts";
import { finalRefusal } from "../../domain/voucher.ts";
import type { Limits } from "../../limits/open-limits.ts";
import type { ApiMetrics } from "../../metrics/metrics.ts";
import type { AwaitedQueue } from "../../queues/awaited-queue.ts";
import { redeemQueue } from "../../queues/catalog.ts";
import type { Traces } from "../../traces/traces.ts";
import type { Caller } from "../auth/caller.ts";
import { resolveVoucher, type VoucherReads } from "../voucher/resolve-voucher.ts";
import { verifyUrl } from "../voucher/voucher-view.ts";
import type { Outcome, OutcomeReads, OutcomeRequest } from "./read-outcomes.ts";

/** A partner's request to redeem. */
export interface RedeemInput {
  /** The request's code or ticket. */
  codeOrTicket: string;
  externalRef: string;
  token: string | null;
  note: string | null;
}

interface Deps {
  voucherReads: VoucherReads;
  outcomeReads: OutcomeReads;
  limits: Limits;
  redeemQueue: AwaitedQueue<RedeemJob, RedeemReply>;
  config: Config;
  log: Logger;
  metrics: Pick<ApiMetrics, "redeemWait" | "redemptions" | "referencesReused"> | null;
  traces: Traces;
}

/** The caller of a request, and the voucher that the request names. */
interface NamedVoucher {
  caller: Caller;
  codeOrTicket: string;
  /** Null if no voucher was found, or if it was not looked up because the key has too many misses. */
  voucherId: string | null;
}

/** One attempt to redeem a voucher that was found. */
interface Attempt extends OutcomeRequest {
  attemptId: string;
  /** Database time in milliseconds. A worker that gets the voucher's lock later than this redeems nothing. */
  deadlineMs: number;
}

/**
 * Redeems a voucher at most once, under the partner's reference. If the first read does not decide the request, adds one job and
 * waits for its reply. If no reply arrives, reads the outcome from Postgres and reports only what Postgres proves.
 * @throws AppError `voucher_not_found`, `too_many_misses`, a refusal, `redeem_timeout` (nothing was redeemed by this attempt),
 * `redeem_unknown`, `voucher_busy`, `overloaded`.
 */
export async function redeemVoucher(ctx: Deps, caller: Caller, input: RedeemInput): Promise<RedeemResponse> {
  const { organizationId } = caller;
  const { externalRef } = input;
  const { now, voucher, redeemed } = await resolveVoucher(ctx, caller, input.codeOrTicket, externalRef);
  if (redeemed !== null && redeemed.voucherId === voucher?.id) {
    return redemptionResponse(ctx, { ...voucher, ...redeemed }, true);
  }
  const named: NamedVoucher = { caller, codeOrTicket: input.codeOrTicket, voucherId: voucher?.id ?? null };
  if (redeemed !== null) {
    return resultOfConfirmed(ctx, named, { organizationId, externalRef, voucherId: redeemed.voucherId });
  }
  if (voucher === null) throw voucherNotFound();
  const attempt: Attempt = {
    organizationId,
    externalRef,
    voucherId: voucher.id,
    attemptId: `${voucher.id}-${crypto.randomUUID()}`,
    deadlineMs: now.getTime() + ctx.config.redeemWaitMs,
  };
  const final = finalRefusal(voucher, now);
  if (final === "voucher_expired") {
    // An earlier attempt with this reference may have been accepted while the voucher was valid, and not have committed yet.
    const outcome = await ctx.outcomeReads.submit(attempt);
    if (outcome.redemption !== null) return confirmedResponse(ctx, named, outcome.redemption, true);
    if (outcome.isSettled && voucher.validUntil <= outcome.now) throw refusal(final);
  } else if (final !== null) throw refusal(final);
  const job = {
    voucherId: voucher.id,
    organizationId,
    keyId: caller.keyId,
    externalRef,
    ticket: isTicket(input.codeOrTicket) ? input.codeOrTicket : null,
    tokenHash: input.token === null ? null : hashToken(input.token),
    note: input.note,
    deadlineMs: attempt.deadlineMs,
  };
  if (!ctx.redeemQueue.hasRoomFor(job)) throw new AppError("overloaded");
  const sentAt = performance.now();
  const answer = await ctx.traces.sendJob(redeemQueue.name, (traceparent) =>
    ctx.redeemQueue.addAndWait(attempt.attemptId, job, ctx.config.redeemWaitMs, traceparent),
  );
  let response: RedeemResponse;
  if (answer.kind === "unknown") {
    ctx.log.warn({ err: answer.cause, attemptId: attempt.attemptId }, "a redeem attempt got no reply");
    response = await resultOfOutcome(ctx, named, attempt);
  } else {
    recordRedeemWait(ctx, answer, performance.now() - sentAt);
    response = await resultOfReply(ctx, named, attempt, voucher, answer.reply);
  }
  if (!response.alreadyConfirmed && !caller.sandbox) ctx.metrics?.redemptions.with(voucher.brand).inc();
  return response;
}

/** Records the phases of a redeem that got its reply. A phase is never negative, even if the clocks of two hosts differ. */
function recordRedeemWait(
  { metrics }: Pick<Deps, "metrics">,
  { queuedMs, workedMs }: { queuedMs: number; workedMs: number },
  waitedMs: number,
): void {
  metrics?.redeemWait.with("queue").observe(Math.max(0, queuedMs) / 1_000);
  metrics?.redeemWait.with("transaction").observe(Math.max(0, workedMs) / 1_000);
  metrics?.redeemWait.with("reply").observe(Math.max(0, waitedMs - queuedMs - workedMs) / 1_000);
}

async function resultOfReply(
  ctx: Deps,
  named: NamedVoucher,
  attempt: Attempt,
  voucher: Voucher,
  reply: RedeemReply,
): Promise<RedeemResponse> {
  const { attemptId } = attempt;
  switch (reply.kind) {
    case "redeemed":
      return redemptionResponse(
        ctx,
        {
          ...voucher,
          voucherId: voucher.id,
          attemptId,
          redeemCode: reply.redeemCode,
          redeemedAt: new Date(reply.redeemedAtMs),
        },
        false,
      );
    case "confirmed":
      return resultOfConfirmed(ctx, named, attempt);
    case "refused":
      throw refusal(reply.code);
    case "late":
      return resultOfOutcome(ctx, named, attempt);
    case "busy":
      throw voucherBusy();
  }
}

/**
 * Reads the result of an attempt from Postgres, because no reply decides it: the redemption with its reference, or an error.
 * @throws AppError `redeem_timeout` when the deadline has passed and nothing was redeemed, which is certain because workers check
 * the deadline under the voucher's lock, by the same clock; otherwise `redeem_unknown`.
 */
async function resultOfOutcome(ctx: Deps, named: NamedVoucher, attempt: Attempt): Promise<RedeemResponse> {
  const outcome = await ctx.outcomeReads.submit(attempt).catch((error) => {
    ctx.log.warn({ err: error }, "cannot read the outcome of a redeem attempt");
    return null;
  });
  if (outcome !== null) {
    const { redemption, isSettled, now } = outcome;
    if (redemption !== null) {
      return confirmedResponse(ctx, named, redemption, redemption.attemptId !== attempt.attemptId);
    }
    if (isSettled && now.getTime() > attempt.deadlineMs) throw new AppError("redeem_timeout");
  }
  throw new AppError("redeem_unknown");
}

async function resultOfConfirmed(ctx: Deps, named: NamedVoucher, request: OutcomeRequest): Promise<RedeemResponse> {
  const { redemption } = await ctx.outcomeReads.submit(request);
  // The redemption was read from a server that is no longer the primary.
  if (redemption === null) throw new AppError("redeem_unknown");
  return confirmedResponse(ctx, named, redemption, true);
}

/** Makes the response from the redemption with the request's reference. If it is of another voucher, marks the response, and logs and counts it. */
function confirmedResponse(
  ctx: Deps,
  { caller, codeOrTicket, voucherId }: NamedVoucher,
  redemption: NonNullable<Outcome["redemption"]>,
  alreadyConfirmed: boolean,
): RedeemResponse {
  const response = redemptionResponse(ctx, redemption, alreadyConfirmed);
  const isNamedVoucher =
    voucherId === null
      ? !isTicket(codeOrTicket) && normaliseCode(codeOrTicket) === redemption.codeKey
      : voucherId === redemption.voucherId;
  if (isNamedVoucher) return response;
  if (!caller.sandbox) ctx.metrics?.referencesReused.with().inc();
  ctx.log.warn(
    { ...caller, redeemedVoucherId: redemption.voucherId, namedVoucherId: voucherId },
    "a reference was used again for another voucher",
  );
  return { ...response, otherVoucher: true };
}

/** Makes the response to a redeem request from a redemption. */
export function redemptionResponse(
  ctx: { config: Config },
  redemption: Redemption,
  alreadyConfirmed: boolean,
): RedeemResponse {
  return pickFields(redeemResponse, {
    ...redemption,
    redeemed: true,
    alreadyConfirmed,
    voucherInstanceId: redemption.voucherId,
    discountPriceUsd: redemption.priceUsd,
    redeemedAt: redemption.redeemedAt.toISOString(),
    verifyUrl: verifyUrl(ctx, redemption.voucherId),
  });
}
