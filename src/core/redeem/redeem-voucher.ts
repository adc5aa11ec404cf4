import type { Logger } from "pino";
import { AppError, refusal, voucherBusy } from "../../platform/api/errors.ts";
import { pickFields } from "../../platform/api/fields.ts";
import type { Config } from "../../platform/config.ts";
import type { DeploymentIdentity } from "../../platform/deployment-identity.ts";
import type { Limits } from "../../platform/limits/open-limits.ts";
import type { PauseWatch } from "../../platform/pauses.ts";
import type { AwaitedQueue } from "../../platform/queues/awaited-queue.ts";
import type { Traces } from "../../platform/traces/traces.ts";
import { awaitConfirmation, type Confirmations } from "../commit/confirm-reads.ts";
import { proofOf, toRefusal } from "../commit/proofs.ts";
import type { Caller } from "../keys/caller.ts";
import type { ApiMetrics } from "../metrics/metrics.ts";
import { expectedTokenHash, hashToken, type TokenSecret } from "../reserve/reservation-token.ts";
import { normaliseCode, repairCode } from "../voucher/codes.ts";
import type { Voucher } from "../voucher/db/vouchers.ts";
import { isTicket } from "../voucher/ids.ts";
import { earlierFormOf, normaliseReference } from "../voucher/references.ts";
import { notFound, resolveVoucher, type VoucherReads, verifyUrl } from "../voucher/resolve-voucher.ts";
import { type RedeemRequest, type RedeemResponse, redeemResponse } from "./api/redeem.ts";
import type { ExternalRef, ReadRedemption, Redemption } from "./db/redemptions.ts";
import { endReference, type ReferenceEnds } from "./end-references.ts";
import type { CanaryJob, RedeemJob, RedeemReply } from "./job.ts";
import { redeemQueue } from "./job.ts";
import { decideRedeem } from "./redeem.ts";

interface Deps {
  deployment: DeploymentIdentity;
  voucherReads: VoucherReads;
  referenceEnds: ReferenceEnds;
  confirmations: Confirmations;
  limits: Limits;
  redeemQueue: AwaitedQueue<RedeemJob | CanaryJob, RedeemReply>;
  tokenSecrets: readonly TokenSecret[];
  pauses: Pick<PauseWatch, "isOutdated">;
  config: Config;
  log: Logger;
  metrics: Pick<ApiMetrics, "redeemWait" | "redemptions" | "referencesReused"> | null;
  traces: Traces;
}

/** One call to redeem. */
interface Attempt {
  id: string;
  caller: Caller;
  reference: ExternalRef;
  /** The form of the reference in which releases up to 0.1.0 stored it. Null if it is the same. */
  earlierForm: string | null;
  codeOrTicket: string;
  /** When the request was read, on the monotonic clock. Milliseconds. */
  receivedAtMs: number;
  /** The primary server's id, taken before the first read. */
  readFrom: string;
  /** Null if no voucher was found, or if it was not looked up because the key had too many misses. */
  voucher: Voucher | null;
}

/** The outcome that a call has found, before {@link proveAndAnswer} has proved it. */
type FoundOutcome =
  /** A worker replied that it has committed the attempt's redemption. */
  | { kind: "redeemed"; redemption: Redemption }
  /** The first read has found that the same voucher was redeemed under the reference. */
  | { kind: "repeated"; redemption: Redemption }
  /** A redemption exists under the reference. It may be of another voucher. */
  | { kind: "recorded" }
  /** `readFrom` is null if the refusal depends on a worker's reply or a timeout, and on no read of this process. */
  | { kind: "refused"; error: AppError; readFrom: string | null };

/**
 * Redeems a voucher at most once, under the partner's reference. If the first read does not decide the request, adds
 * one job and waits for its reply. If a refusal needs the proof `ended`, it also means that no attempt up to now has
 * redeemed or will redeem under the reference.
 * @throws AppError of `ERRORS_OF.redeemVoucher`, each with the proof that `proofs.ts` requires.
 */
export async function redeemVoucher(
  ctx: Deps,
  caller: Caller,
  { code, token, ticket, note, externalRef }: RedeemRequest,
  receivedAtMs: number,
): Promise<RedeemResponse> {
  const attempt: Attempt = {
    id: "",
    caller,
    reference: { organizationId: caller.organizationId, externalRef: normaliseReference(externalRef) },
    earlierForm: earlierFormOf(externalRef),
    // A `ticket` field with a code must not redeem the voucher, so it becomes the empty text, which matches no voucher.
    codeOrTicket: code ?? (ticket && isTicket(ticket) ? ticket : ""),
    receivedAtMs,
    readFrom: ctx.deployment.serverId,
    voucher: null,
  };
  const details = { note, tokenHash: token == null ? null : hashToken(token) };
  const response = await findOutcome(ctx, attempt, details)
    .catch((error): FoundOutcome => refused(toRefusal(error), attempt.readFrom))
    .then((found) => proveAndAnswer(ctx, attempt, found));
  if (!response.alreadyConfirmed && !caller.sandbox) ctx.metrics?.redemptions.with(attempt.voucher?.brand ?? "").inc();
  return response;
}

/** Decides the outcome from the first read. If that read does not suffice, asks a worker. */
async function findOutcome(
  ctx: Deps,
  attempt: Attempt,
  details: Pick<RedeemJob, "note" | "tokenHash">,
): Promise<FoundOutcome> {
  const { caller, codeOrTicket, readFrom, earlierForm, reference } = attempt;
  const forms = [...(earlierForm === null ? [] : [earlierForm]), reference.externalRef];
  const { voucher, redeemed, ...read } = await resolveVoucher(ctx, caller, codeOrTicket, forms);
  attempt.voucher = voucher;
  if (earlierForm !== null) {
    const earlier = { ...attempt.reference, externalRef: earlierForm };
    // Processes of an earlier release redeem under this form of the reference. Ending it stops their attempts that have
    // already read it.
    const { kind } = await tryToEnd(ctx, earlier, null);
    if (kind === "redeemed") {
      attempt.reference = earlier;
      return { kind: "recorded" };
    }
    if (kind !== "ended") return refused(new AppError("redeem_unknown"), readFrom);
  }
  if (redeemed !== null && redeemed.voucherId === voucher?.id)
    return { kind: "repeated", redemption: { ...voucher, ...redeemed } };
  if (redeemed !== null) return { kind: "recorded" };
  if (voucher === null) return refused(notFound(codeOrTicket), readFrom);
  attempt.id = `${voucher.id}-${crypto.randomUUID()}`;
  const job = {
    ...details,
    voucherId: voucher.id,
    ...attempt.reference,
    keyId: caller.keyId,
    ...(caller.capped && { capped: true }),
    ticket: isTicket(codeOrTicket) ? codeOrTicket : null,
    deadlineMs: read.now.getTime() + ctx.config.redeemWaitMs,
    seenEnd: read.seenEnd,
    generation: read.generation,
  };
  const early = decideRedeem(
    voucher,
    read.reservation,
    null,
    { ...job, attemptId: attempt.id, isEnded: false },
    read.now,
    (reservation) => expectedTokenHash(ctx.tokenSecrets, reservation),
  );
  if (early.kind === "refused") return refused(refusal(early.code), readFrom);
  // Refuses a request that has waited too long in this process. The sender may have repeated it on another process, and
  // got the answer that nothing is redeemed. That answer stops only attempts that have already read the reference. This
  // attempt may have read it afterwards, so it could still redeem.
  if (ctx.pauses.isOutdated(attempt.receivedAtMs)) return refused(new AppError("redeem_unknown"), readFrom);
  if (!ctx.redeemQueue.askForPlace(job)) return refused(new AppError("overloaded"), readFrom);
  return askWorker(ctx, attempt, voucher, job);
}

/**
 * Adds the job and waits for its reply. No reply arrives while Redis is unavailable, or if Redis loses the job or the
 * reply. Without a reply, refuses the attempt: with `redeem_timeout` if Postgres proves that it redeems nothing, and
 * otherwise with `redeem_unknown`.
 */
async function askWorker(ctx: Deps, attempt: Attempt, voucher: Voucher, job: RedeemJob): Promise<FoundOutcome> {
  const sentAt = performance.now();
  const answer = await ctx.traces.sendJob(redeemQueue.name, (traceparent) =>
    ctx.redeemQueue.addAndWait(attempt.id, job, ctx.config.redeemWaitMs, { traceparent }),
  );
  if (answer.kind === "unknown") {
    ctx.log.warn({ err: answer.cause, attemptId: attempt.id }, "a redeem attempt got no reply");
    return refused(new AppError("redeem_timeout"));
  }
  recordRedeemWait(ctx, answer, performance.now() - sentAt);
  const { reply } = answer;
  switch (reply.kind) {
    case "redeemed": {
      const { redeemCode, redeemedAtMs } = reply;
      const redeemed = { voucherId: voucher.id, attemptId: attempt.id, redeemCode, redeemedAt: new Date(redeemedAtMs) };
      return { kind: "redeemed", redemption: { ...voucher, ...redeemed } };
    }
    case "confirmed":
      return { kind: "recorded" };
    case "refused":
      return refused(refusal(reply.code));
    case "late":
    case "canary":
      return refused(new AppError("redeem_timeout"));
    case "busy":
      return refused(voucherBusy());
    case "over_cap":
      return refused(new AppError("cap_reached", undefined, { retryAfterSeconds: reply.retryAfterSeconds }));
  }
}

const refused = (error: AppError, readFrom: string | null = null): FoundOutcome => ({
  kind: "refused",
  error,
  readFrom,
});

/** Records how long the phases of an answered redeem took. Counts 0 where clocks of hosts make a phase negative. */
function recordRedeemWait(
  { metrics }: Pick<Deps, "metrics">,
  { queuedMs, workedMs }: { queuedMs: number; workedMs: number },
  waitedMs: number,
): void {
  metrics?.redeemWait.with("queue").observe(Math.max(0, queuedMs) / 1_000);
  metrics?.redeemWait.with("transaction").observe(Math.max(0, workedMs) / 1_000);
  metrics?.redeemWait.with("reply").observe(Math.max(0, waitedMs - queuedMs - workedMs) / 1_000);
}

/**
 * Every redeem ends here. Proves the outcome that was found, then answers. Before it answers that nothing was redeemed,
 * it ends every attempt up to now under the reference, including the call's own job, which may be delivered again. If
 * it finds a redemption then, it answers with that redemption.
 * @throws AppError the refusal; `redeem_unknown` when the attempts could not be ended, for example during a redemption.
 */
async function proveAndAnswer(ctx: Deps, attempt: Attempt, found: FoundOutcome): Promise<RedeemResponse> {
  if (found.kind === "redeemed") return redemptionResponse(ctx, found.redemption, false);
  if (found.kind === "repeated") {
    await awaitConfirmation(ctx, attempt.readFrom);
    return redemptionResponse(ctx, found.redemption, true);
  }
  if (found.kind === "refused" && proofOf("redeemVoucher", found.error) === "none") throw found.error;
  const readFrom = found.kind === "refused" ? found.readFrom : null;
  const outcome = await tryToEnd(ctx, attempt.reference, readFrom);
  if (outcome.kind === "redeemed") return recordedResponse(ctx, attempt, outcome.redemption);
  throw outcome.kind === "ended" && found.kind === "refused" ? found.error : new AppError("redeem_unknown");
}

/** Like {@link endReference}, but an error gives the outcome `held`. */
function tryToEnd(ctx: Deps, reference: ExternalRef, readFrom: string | null): ReturnType<typeof endReference> {
  return endReference(ctx, reference, readFrom).catch((cause) => {
    ctx.log.warn({ err: cause }, "cannot end the attempts of a reference");
    return { kind: "held" };
  });
}

/**
 * The response for the redemption under the reference. If it is of another voucher, sets `otherVoucher`, and logs and
 * counts it.
 */
function recordedResponse(
  ctx: Deps,
  { id, caller, codeOrTicket, voucher }: Attempt,
  redemption: NonNullable<ReadRedemption["redemption"]>,
): RedeemResponse {
  const response = redemptionResponse(ctx, redemption, redemption.attemptId !== id);
  const isNamedVoucher =
    voucher === null
      ? !isTicket(codeOrTicket) &&
        [normaliseCode(codeOrTicket), ...repairCode(codeOrTicket)].includes(redemption.codeKey)
      : voucher.id === redemption.voucherId;
  if (isNamedVoucher) return response;
  if (!caller.sandbox) ctx.metrics?.referencesReused.with().inc();
  ctx.log.warn(
    { ...caller, redeemedVoucherId: redemption.voucherId, namedVoucherId: voucher?.id ?? null },
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
