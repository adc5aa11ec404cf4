import { z } from "zod";
import type { ErrorCode } from "../../../src/domain/errors.ts";
import type { RedeemResult } from "../../../src/services/redeem-voucher.ts";

/** The queue of baseline (b), under a prefix of its own. */
export const NAIVE_QUEUE = "naive-redeem";
export const NAIVE_PREFIX = "bench";

/** How long a request waits for its job. Milliseconds. */
export const NAIVE_WAIT_MS = 10_000;

/** One redeem: the request as it came, and who asks. */
export const naiveJob = z.object({
  organizationId: z.string(),
  keyId: z.string(),
  codeOrTicket: z.string(),
  externalRef: z.string(),
  token: z.string().nullable(),
  note: z.string().nullable(),
});
export type NaiveJob = z.infer<typeof naiveJob>;

/** The answer, or the refusal. */
export type NaiveReply =
  | { result: RedeemResult }
  | { refused: ErrorCode; message: string; retryAfterSeconds: number | undefined };
