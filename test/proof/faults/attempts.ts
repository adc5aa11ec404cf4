import { type AskFor, type Exchange, type History, refOf } from "./history.ts";
import { ROUNDING_MS } from "./stepped-clock.ts";

// Decides which attempts to redeem may still redeem something.

export type Redeem = Exchange<AskFor<"redeem">>;

/**
 * An attempt cannot redeem if a worker first reads it later than this after the request. This is the longest pause that
 * an API process does not notice (2 s), plus the time after which the process treats a request as outdated (5 s), plus
 * some time for a busy machine. Milliseconds.
 */
const FIRST_READ_MAX_MS = 10_000;

/** Codes of refusals which say that no attempt with this reference has redeemed so far, or will. */
const DENIALS = [
  "voucher_not_found",
  "voucher_used",
  "voucher_voided",
  "voucher_expired",
  "voucher_suspended",
  "voucher_reserved",
  "reservation_ended",
  "token_mismatch",
  "cap_reached",
  "voucher_busy",
  "redeem_timeout",
];

/** Codes of refusals which say that this attempt redeems nothing, but say nothing about earlier attempts. */
const NOT_CARRIED_OUT = ["rate_limited", "too_many_misses", "overloaded"];

/** Whether a redeem's answer says that this attempt redeems nothing. */
export function saysNotCarriedOut(exchange: Pick<Exchange, "code">): boolean {
  return saysNotRedeemed(exchange) || NOT_CARRIED_OUT.includes(exchange.code ?? "");
}

/** Whether a redeem's answer says that its reference has redeemed nothing. */
export function saysNotRedeemed({ code }: Pick<Exchange, "code">): boolean {
  return code !== undefined && DENIALS.includes(code);
}

/** Whether it is unknown if a redeem happened, because its answer says so or is missing. */
export function isOpen({ status, code }: Pick<Exchange, "status" | "code">): boolean {
  return status === null || code === "redeem_unknown" || code === "unavailable";
}

/** Returns when a worker first read a call at the latest: before its answer, or some seconds after the request. */
export function firstReadByMs({ status, sentAtMs, endedAtMs }: Redeem): number {
  return status === null ? sentAtMs + FIRST_READ_MAX_MS : endedAtMs;
}

/**
 * Whether a call can no longer redeem. Another call with its reference was sent after the first read of the call's
 * attempt, and was told that nothing was redeemed.
 */
export function isEnded(redeem: Redeem, redeems: readonly Redeem[]): boolean {
  return redeems.some(
    (other) => redeem.status !== 200 && saysNotRedeemed(other) && other.sentAtMs > firstReadByMs(redeem) + ROUNDING_MS,
  );
}

/**
 * Finds the voucher that each reference redeemed, by all answers and webhooks. The keys are those of `refOf`.
 * `checkRedeems` judges that no reference redeems a second voucher.
 */
export function redeemedUnder({ exchanges, webhooks }: History): Map<string, string> {
  const shown = exchanges.flatMap(({ ask, status, body }): [string, string][] => {
    if (status !== 200) return [];
    if (ask.operation === "redeem" || ask.operation === "redemption") return [[refOf(ask), body.voucherInstanceId]];
    if (ask.operation !== "list") return [];
    const { key } = ask;
    return body.redemptions.map((one: Record<"externalRef" | "voucherInstanceId", string>) => [
      refOf({ key, externalRef: one.externalRef }),
      one.voucherInstanceId,
    ]);
  });
  const told = webhooks.map(({ organizationId, externalRef, voucherId }): [string, string] => [
    `${organizationId} ${externalRef}`,
    voucherId,
  ]);
  return new Map([...told, ...shown]);
}
