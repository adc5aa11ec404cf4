import type { Caller } from "../../../../src/core/keys/caller.ts";
import type { RedeemResponse } from "../../../../src/core/redeem/api/redeem.ts";
import { redeem } from "../../../../src/core/redeem/routes/redeem.ts";
import { AppError, REFUSAL_CODES, refusal, voucherNotFound } from "../../../../src/platform/api/errors.ts";
import { type RedeemBody, type RunTransaction, redeemInOneTransaction } from "../baselines/one-transaction.ts";
import type { Baseline } from "../baselines/open-baseline.ts";

// What the contenders with a library share: the job's data, its work, and its answer.

/** A redeem request as a library stores it. */
export interface RedeemJob {
  caller: Caller;
  body: RedeemBody;
  /** Stays the same if the library runs the job again, so that the second run recognizes the first run's redemption. */
  attempt: string;
}

/** The outcome of a redeem. A refusal is a result, because a library repeats a job that throws. */
export type RedeemEnd = { response: RedeemResponse } | { refused: AppError["code"] };

/** Identifies a redeem by its organization and reference. Contains no colon, which BullMQ forbids. */
export function redeemId({ caller, body }: RedeemJob): string {
  return `${caller.organizationId}/${encodeURIComponent(body.externalRef)}`;
}

/** Runs one transaction, like baseline (a). If the library runs a job again, it returns the first run's redemption. */
export async function runRedeem(
  work: Baseline["work"],
  { caller, body, attempt }: RedeemJob,
  runTransaction?: RunTransaction,
): Promise<RedeemEnd> {
  try {
    return { response: await redeemInOneTransaction(work, caller, body, attempt, runTransaction) };
  } catch (error) {
    const { code } = error as AppError;
    if (error instanceof AppError && isRefusal(code)) return { refused: code };
    throw error;
  }
}

const isRefusal = (code: AppError["code"]) =>
  code === "voucher_not_found" || REFUSAL_CODES.some((known) => known === code);

/**
 * Serves redeem requests.
 * @param execute gives a request to the library and waits for the outcome. If it throws, the answer is 503, and the
 *   caller repeats the request.
 */
export function serveRedeems(
  { replaceWork, serve }: Baseline,
  execute: (job: RedeemJob) => Promise<RedeemEnd>,
): Promise<void> {
  const answer = async (caller: Caller, body: RedeemBody): Promise<RedeemResponse> => {
    const end = await execute({ caller, body, attempt: crypto.randomUUID() }).catch((error: unknown) => {
      throw new AppError("redeem_unknown", undefined, { cause: error });
    });
    if ("response" in end) return end.response;
    const code = REFUSAL_CODES.find((known) => known === end.refused);
    throw code === undefined ? voucherNotFound() : refusal(code);
  };
  return serve([replaceWork(redeem, "voucher.redeem", answer)]);
}
