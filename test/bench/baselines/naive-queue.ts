import type { ErrorCode } from "../../../src/contract/errors.ts";
import type { RedeemResponse } from "../../../src/contract/redeem.ts";
import type { Caller } from "../../../src/services/auth/caller.ts";
import type { RedeemInput } from "./one-transaction.ts";

/** The queue of baseline (b) and its key prefix. */
export const NAIVE_QUEUE = "naive-redeem";
export const NAIVE_PREFIX = "bench";

/** One redeem: the request and its caller. */
export type NaiveJob = Caller & RedeemInput;

/** The answer, or the refusal. */
export type NaiveReply =
  | { result: RedeemResponse }
  | { refused: ErrorCode; message: string; retryAfterSeconds: number | undefined };
