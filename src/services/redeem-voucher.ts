import type { ApiContext } from "../context.ts";
import { type ExternalRef, findRedemption, type Redemption } from "../db/redemptions.ts";
import type { Voucher } from "../db/vouchers.ts";
import { AppError, refusal } from "../domain/errors.ts";
import { isTicket } from "../domain/ids.ts";
import { hashToken } from "../domain/reservation-token.ts";
import { finalRefusal } from "../domain/voucher.ts";
import type { RedeemReply } from "../queues/catalog.ts";
import type { Caller } from "./caller.ts";
import { verifyUrl } from "./look-up-voucher.ts";
import { resolveVoucher, voucherNotFound } from "./resolve-voucher.ts";

/** What a partner asks for. */
export interface RedeemInput {
  /** The code or the ticket, whichever the body named. */
  codeOrTicket: string;
  externalRef: string;
  token: string | null;
  note: string | null;
}

/** The answer to redeem (contract, "Redeem result"). */
export interface RedeemResult {
  redeemed: true;
  alreadyConfirmed: boolean;
  voucherInstanceId: string;
  redeemCode: string;
  serial: number;
  productName: string;
  productKey: string;
  discountPriceUsd: number;
  benefitMonths: number;
  redeemedAt: string;
  verifyUrl: string;
}

type Deps = Pick<
  ApiContext,
  "pool" | "voucherReads" | "limits" | "redeemQueue" | "config" | "log" | "metrics" | "traces"
>;

/**
 * Burns a voucher once under the partner's reference. What can be told from one read is answered from it; everything else is
 * one job, for whose reply this waits. Without a reply it asks the database, and claims to know only what it knows.
 * @throws AppError `voucher_not_found`, `too_many_misses`, a refusal, `redeem_timeout` (nothing was burnt), `redeem_unknown`, `voucher_busy`,
 * `overloaded`.
 */
export async function redeemVoucher(ctx: Deps, caller: Caller, input: RedeemInput): Promise<RedeemResult> {
  const ref: ExternalRef = { organizationId: caller.organizationId, externalRef: input.externalRef };
  const { now, voucher, confirmed } = await resolveVoucher(ctx, caller, input.codeOrTicket, input.externalRef);
  if (confirmed) return redeemResult(ctx, await selectRedemption(ctx, ref), true);
  if (voucher === null) throw voucherNotFound();
  const final = finalRefusal(voucher, now);
  if (final !== null) throw refusal(final);
  if (!ctx.redeemQueue.hasRoom) throw overloaded();

  const attemptId = `${voucher.id}-${crypto.randomUUID()}`;
  const job = {
    voucherId: voucher.id,
    organizationId: caller.organizationId,
    keyId: caller.keyId,
    externalRef: input.externalRef,
    ticket: isTicket(input.codeOrTicket) ? input.codeOrTicket : null,
    tokenHash: input.token === null ? null : hashToken(input.token),
    note: input.note,
    deadlineMs: now.getTime() + ctx.config.redeemWaitMs,
  };
  const askedAt = performance.now();
  const asked = await ctx.traces.ask("redeem", (traceparent) =>
    ctx.redeemQueue.ask(attemptId, job, ctx.config.redeemWaitMs, traceparent),
  );
  switch (asked.kind) {
    case "reply":
      ctx.metrics?.redeems.observe({ ...asked, waitedMs: performance.now() - askedAt });
      return answerReply(ctx, ref, attemptId, voucher, asked.reply);
    case "withdrawn":
      throw new AppError(
        "redeem_timeout",
        "The voucher could not be redeemed in time. Nothing was burned. Please try again.",
        {
          retryAfterSeconds: 2,
        },
      );
    case "unknown":
      ctx.log.warn({ err: asked.cause, attemptId }, "a redeem attempt got no reply");
      return answerUnknown(ctx, ref, attemptId);
  }
}

async function answerReply(
  ctx: Deps,
  ref: ExternalRef,
  attemptId: string,
  voucher: Voucher,
  reply: RedeemReply,
): Promise<RedeemResult> {
  switch (reply.kind) {
    case "burnt":
      return redeemResult(
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
      return redeemResult(ctx, await selectRedemption(ctx, ref), true);
    case "refused":
      throw refusal(reply.code);
    case "late":
      return answerUnknown(ctx, ref, attemptId);
    case "busy":
      throw new AppError(
        "voucher_busy",
        "This voucher is being changed at the moment. Retry with the same externalRef.",
        {
          retryAfterSeconds: 1,
        },
      );
  }
}

/** What can be said when no reply came: the burn if the reference is confirmed, else that nothing is known. */
async function answerUnknown(ctx: Deps, ref: ExternalRef, attemptId: string): Promise<RedeemResult> {
  const redemption = await findRedemption(ctx.pool, ref).catch((error) => {
    ctx.log.warn({ err: error }, "a reference could not be read");
    return null;
  });
  if (redemption !== null) return redeemResult(ctx, redemption, redemption.attemptId !== attemptId);
  throw new AppError(
    "redeem_unknown",
    "It is not known yet whether the voucher was redeemed. Retry with the same externalRef to find out; it cannot burn twice.",
    { retryAfterSeconds: 2 },
  );
}

async function selectRedemption(ctx: Deps, ref: ExternalRef): Promise<Redemption> {
  const redemption = await findRedemption(ctx.pool, ref);
  if (redemption === null) throw new Error("a confirmed reference has no redemption");
  return redemption;
}

/** What a caller is told of a burn. */
export function redeemResult(
  ctx: Pick<ApiContext, "config">,
  redemption: Redemption,
  alreadyConfirmed: boolean,
): RedeemResult {
  return {
    redeemed: true,
    alreadyConfirmed,
    voucherInstanceId: redemption.voucherId,
    redeemCode: redemption.redeemCode,
    serial: redemption.serial,
    productName: redemption.productName,
    productKey: redemption.productKey,
    discountPriceUsd: redemption.priceUsd,
    benefitMonths: redemption.benefitMonths,
    redeemedAt: redemption.redeemedAt.toISOString(),
    verifyUrl: verifyUrl(ctx, redemption.voucherId),
  };
}

function overloaded(): AppError {
  return new AppError("overloaded", "Too many redemptions are waiting. Please retry with the same externalRef.", {
    retryAfterSeconds: 1,
  });
}
