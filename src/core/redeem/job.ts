import { z } from "zod";
import { REFUSAL_CODES } from "../../platform/api/errors.ts";
import { defineQueue } from "../../platform/queues/queue-settings.ts";
import { CORE_QUEUES } from "../queues.ts";
import { redeemRequest } from "./api/redeem.ts";

const { note } = redeemRequest.shape;

/** One attempt to redeem a voucher: the request, with an id instead of the code and a hash instead of the token. */
export const redeemJob = z.object({
  note,
  /**
   * The reference as the API process has normalised it. Workers must not normalise it again, because API processes,
   * perhaps of another release, end the attempts of exactly this text.
   */
  externalRef: z.string(),
  voucherId: z.string(),
  organizationId: z.string(),
  keyId: z.string(),
  /** Whether the key has a daily limit, as far as the API knows. The database enforces the limit in any case. */
  capped: z.boolean().optional(),
  /** Null if the caller identified the voucher by its code. */
  ticket: z.string().nullable(),
  /** SHA-256, in hex, of the token that the caller sent. Null if the caller sent none. */
  tokenHash: z.string().nullable(),
  /** Database time in milliseconds after which this attempt must not redeem. */
  deadlineMs: z.number(),
  /** The reference's version in `reference_ends` at the API's first read, or 0. A later version prevents redeeming. */
  seenEnd: z.number(),
  /** The generation of `reference_ends` at the API's first read. Two generations later, the attempt counts as ended. */
  generation: z.number(),
});
export type RedeemJob = z.output<typeof redeemJob>;

/** A job that redeems nothing. If it gets a reply, a redeem would get one too. */
const canaryJob = z.object({
  /** Selects the shard to which the job goes. No voucher has this id. */
  voucherId: z.string(),
  organizationId: z.string(),
  /** The process that asks. */
  processId: z.string(),
});
export type CanaryJob = z.output<typeof canaryJob>;

/** The outcome of one attempt. A refusal is a normal reply. A job fails only on an unexpected error. */
const redeemReply = z.discriminatedUnion("kind", [
  /** This attempt redeemed the voucher. */
  z.object({ kind: z.literal("redeemed"), redeemCode: z.string(), redeemedAtMs: z.number() }),
  /** Another attempt has redeemed a voucher under this reference. The caller must read that redemption. */
  z.object({ kind: z.literal("confirmed") }),
  z.object({ kind: z.literal("refused"), code: z.enum(REFUSAL_CODES) }),
  /** The deadline had passed, or the reference was ended after the API's first read. This attempt redeemed nothing. */
  z.object({ kind: z.literal("late") }),
  /** The redemption would exceed the key's daily limit, which starts anew at midnight UTC. */
  z.object({ kind: z.literal("over_cap"), retryAfterSeconds: z.number() }),
  /** The voucher's row stayed locked. This attempt redeemed nothing. */
  z.object({ kind: z.literal("busy") }),
  /** The canary was committed. */
  z.object({ kind: z.literal("canary") }),
]);
export type RedeemReply = z.output<typeof redeemReply>;

export const redeemQueue = defineQueue(CORE_QUEUES.redeem, {
  data: z.union([redeemJob, canaryJob]),
  reply: redeemReply,
});
