import type { Logger } from "pino";
import type { Config } from "../../config.ts";
import { AppError, refusal, voucherBusy, voucherNotFound } from "../../contract/errors.ts";
import { pickFields } from "../../contract/fields.ts";
import type { RedeemJob, RedeemReply } from "../../contract/jobs.ts";
import { type RedeemRequest, type RedeemResponse, redeemResponse } from "../../contract/redeem.ts";
import type { ExternalRef, ReadRedemption, Redemption } from "../../db/redemptions.ts";
import type { Voucher } from "../../db/vouchers.ts";
import { normaliseCode } from "../../domain/codes.ts";
import type { DeploymentIdentity } from "../../domain/deployment.ts";
import { isTicket } from "../../domain/ids.ts";
import { hashToken } from "../../domain/reservation-token.ts";
import { finalRefusal } from "../../domain/voucher.ts";
import type { Limits } from "../../limits/open-limits.ts";
import type { ApiMetrics } from "../../metrics/metrics.ts";
import type { AwaitedQueue } from "../../queues/awaited-queue.ts";
import { redeemQueue } from "../../queues/catalog.ts";
import type { Traces } from "../../traces/traces.ts";
import type { Caller } from "../auth/caller.ts";
import { confirmRead, endReference, type ReferenceEnds } from "../batches/end-references.ts";
import { resolveVoucher, type VoucherReads, verifyUrl } from "../voucher/resolve-voucher.ts";

interface Deps {
  deployment: DeploymentIdentity;
  voucherReads: VoucherReads;
  referenceEnds: ReferenceEnds;
  limits: Limits;
  redeemQueue: AwaitedQueue<RedeemJob, RedeemReply>;
  config: Config;
  log: Logger;
  metrics: Pick<ApiMetrics, "redeemWait" | "redemptions" | "referencesReused"> | null;
  traces: Traces;
}

/** A request's caller and reference, and the voucher that the request names. */
interface NamedVoucher {
  caller: Caller;
  reference: ExternalRef;
  codeOrTicket: string;
  /** Null if no voucher was found, or if it was not looked up because the key has too many misses. */
  voucherId: string | null;
}

/**
 * Redeems a voucher at most once, under the partner's reference. If the first read does not decide the request, adds one job and
 * waits for its reply. A refusal or a timeout is told only once it has ended every attempt of the reference that was made before.
 * @throws AppError `voucher_not_found`, `too_many_misses`, a refusal, `redeem_timeout` (no attempt so far has redeemed or will redeem),
 * `redeem_unknown`, `voucher_busy`, `overloaded`.
 */
export async function redeemVoucher(
  ctx: Deps,
  caller: Caller,
  { code, token, ...details }: RedeemRequest,
): Promise<RedeemResponse> {
  // A code is not accepted as `ticket`: the empty text matches no voucher.
  const codeOrTicket = code ?? (details.ticket && isTicket(details.ticket) ? details.ticket : "");
  const reference = { organizationId: caller.organizationId, externalRef: details.externalRef };
  const readFrom = ctx.deployment.origin;
  const read = await resolveVoucher(ctx, caller, codeOrTicket, details.externalRef);
  const { now, voucher, redeemed } = read;
  if (redeemed !== null && redeemed.voucherId === voucher?.id) {
    await confirmRead(ctx, readFrom);
    return redemptionResponse(ctx, { ...voucher, ...redeemed }, true);
  }
  const named: NamedVoucher = { caller, reference, codeOrTicket, voucherId: voucher?.id ?? null };
  if (redeemed !== null) return endAndTell(ctx, named, null, new AppError("redeem_unknown"));
  if (voucher === null) throw voucherNotFound();
  const final = finalRefusal(voucher, now);
  if (final !== null) return endAndTell(ctx, named, null, refusal(final), readFrom);
  const attemptId = `${voucher.id}-${crypto.randomUUID()}`;
  const job = {
    ...details,
    voucherId: voucher.id,
    ...reference,
    keyId: caller.keyId,
    ticket: isTicket(codeOrTicket) ? codeOrTicket : null,
    tokenHash: token == null ? null : hashToken(token),
    deadlineMs: now.getTime() + ctx.config.redeemWaitMs,
    seenEnd: read.seenEnd,
    generation: read.generation,
  };
  if (!ctx.redeemQueue.hasRoomFor(job)) throw new AppError("overloaded");
  const sentAt = performance.now();
  const answer = await ctx.traces.sendJob(redeemQueue.name, (traceparent) =>
    ctx.redeemQueue.addAndWait(attemptId, job, ctx.config.redeemWaitMs, traceparent),
  );
  let response: RedeemResponse;
  if (answer.kind === "unknown") {
    ctx.log.warn({ err: answer.cause, attemptId }, "a redeem attempt got no reply");
    response = await endAndTell(ctx, named, attemptId, new AppError("redeem_timeout"));
  } else {
    recordRedeemWait(ctx, answer, performance.now() - sentAt);
    response = await resultOfReply(ctx, named, attemptId, voucher, answer.reply);
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
  attemptId: string,
  voucher: Voucher,
  reply: RedeemReply,
): Promise<RedeemResponse> {
  switch (reply.kind) {
    case "redeemed": {
      const { redeemCode, redeemedAtMs } = reply;
      const redemption = {
        ...voucher,
        voucherId: voucher.id,
        attemptId,
        redeemCode,
        redeemedAt: new Date(redeemedAtMs),
      };
      return redemptionResponse(ctx, redemption, false);
    }
    case "confirmed":
      return endAndTell(ctx, named, attemptId, new AppError("redeem_unknown"));
    case "refused":
      return endAndTell(ctx, named, attemptId, refusal(reply.code));
    case "late":
      return endAndTell(ctx, named, attemptId, new AppError("redeem_timeout"));
    case "busy":
      throw voucherBusy();
  }
}

/**
 * Reads the redemption with the request's reference, which is the response. If there is none, ends every attempt of the reference that was made
 * before, and throws `error`.
 * @throws AppError `error`; `redeem_unknown` when the end could not be committed, for instance because a transaction may redeem at present.
 */
async function endAndTell(
  ctx: Deps,
  named: NamedVoucher,
  attemptId: string | null,
  error: AppError,
  readFrom: string | null = null,
): Promise<RedeemResponse> {
  const outcome = await endReference(ctx, named.reference, readFrom).catch((cause) => {
    ctx.log.warn({ err: cause }, "cannot end the attempts of a reference");
    return { kind: "held" } as const;
  });
  if (outcome.kind === "ended") throw error;
  if (outcome.kind !== "redeemed") throw new AppError("redeem_unknown");
  return confirmedResponse(ctx, named, outcome.redemption, outcome.redemption.attemptId !== attemptId);
}

/** Makes the response from the redemption with the request's reference. If it is of another voucher, marks the response, and logs and counts it. */
function confirmedResponse(
  ctx: Deps,
  { caller, codeOrTicket, voucherId }: NamedVoucher,
  redemption: NonNullable<ReadRedemption["redemption"]>,
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
  ctx: { config: Pick<Config, "baseUrl"> },
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
