import { z } from "zod";
import { REFUSAL_CODES } from "./errors.ts";
import { redeemRequest } from "./redeem.ts";

/** Fields of every job besides its data. */
export const jobEnvelope = z.object({
  /** `Deployment.origin` of the process that added the job. Workers of another deployment or database reject the job. */
  origin: z.string(),
  /** The Redis channel on which a caller waits for the reply. */
  replyTo: z.string().optional(),
  /** The trace that the job is part of (W3C Trace Context). An invalid value is ignored. */
  traceparent: z.string().optional().catch(undefined),
});

/** A job's result, as its worker sends it to the waiting caller. */
export const jobEnd = z.object({
  jobId: z.string(),
  /** What the job returned, or why it failed. */
  outcome: z.union([z.object({ reply: z.unknown() }), z.object({ failure: z.string() })]),
  /** From adding the job to its start, by the clocks of both hosts. Milliseconds. */
  queuedMs: z.number(),
  /** From its start to its reply. Milliseconds. */
  workedMs: z.number(),
});
export type JobEnd = z.output<typeof jobEnd>;

const { code: _, token: __, ...redeemDetails } = redeemRequest.shape;

/** One attempt to redeem one voucher: the request, with the voucher's id instead of its code, and the token's hash instead of the token. */
export const redeemJob = z.object({
  ...redeemDetails,
  voucherId: z.string(),
  organizationId: z.string(),
  keyId: z.string(),
  /** Null when the caller identified the voucher by its code. */
  ticket: z.string().nullable(),
  /** SHA-256 in hex of the token that the caller sent; null when there was none. */
  tokenHash: z.string().nullable(),
  /** Database time in milliseconds after which this attempt must not redeem. */
  deadlineMs: z.number(),
  /** The version of the reference's last end at the API's first read, 0 without one. After another end, this attempt must not redeem. */
  seenEnd: z.number(),
  /** The generation of ends at that read. Ends that it may not have seen are deleted two generations later. */
  generation: z.number(),
});
export type RedeemJob = z.output<typeof redeemJob>;

/** The outcome of one attempt. A refusal is a normal reply; a job fails only on an unexpected error. */
export const redeemReply = z.discriminatedUnion("kind", [
  /** This attempt redeemed the voucher. */
  z.object({ kind: z.literal("redeemed"), redeemCode: z.string(), redeemedAtMs: z.number() }),
  /** Another attempt has redeemed a voucher under this reference; read it from the database. */
  z.object({ kind: z.literal("confirmed") }),
  z.object({ kind: z.literal("refused"), code: z.enum(REFUSAL_CODES) }),
  /** The deadline had passed, or the reference was ended since the API's first read. This attempt redeemed nothing. */
  z.object({ kind: z.literal("late") }),
  /** The voucher's row stayed locked. This attempt redeemed nothing. */
  z.object({ kind: z.literal("busy") }),
]);
export type RedeemReply = z.output<typeof redeemReply>;

/** A request to seal the Pending events of one voucher. */
export const sealJob = z.object({ voucherId: z.string() });
export type SealJob = z.output<typeof sealJob>;

/** The number of events sealed: 0 when they were already sealed. */
export const sealReply = z.object({ sealed: z.number() });
export type SealReply = z.output<typeof sealReply>;

/** One pass of the sweeper. The sweeper reads its work from Postgres. */
export const sweepJob = z.object({});

/** The results of one pass. */
export const sweepReport = z.object({
  /** Expired reservations whose end was recorded. */
  reservationsExpired: z.number(),
  /** Live reservations whose missing lease was restored. */
  leasesRestored: z.number(),
  /** Leases without a live reservation that were removed. */
  leasesRemoved: z.number(),
  /** Expired vouchers whose expiry was recorded as an event. */
  expiriesRecorded: z.number(),
  /** Expired referrer contracts whose end was recorded. */
  contractsEnded: z.number(),
  /** Vouchers with Pending events for which a seal job was added. */
  sealsRequested: z.number(),
  /** Endpoints for which a webhook job was added. */
  webhooksRequested: z.number(),
  /** Pending deliveries of disabled endpoints that were ended, and deliveries that were deleted. */
  deliveriesRemoved: z.number(),
  /** Ends of references that no attempt needs any more, deleted. */
  endsRemoved: z.number(),
  chainsChecked: z.number(),
  chainsBroken: z.number(),
  /** Error messages of failed tasks, by task. The next pass retries them. */
  failures: z.record(z.string(), z.string()),
  durationMs: z.number(),
});
export type SweepReport = z.output<typeof sweepReport>;

/** The tasks of a pass, with the report field that counts the results of each. The check of chains is not listed, because it has two counts. */
export const SWEEP_TASKS = {
  expireReservations: "reservationsExpired",
  restoreLeases: "leasesRestored",
  removeOrphanLeases: "leasesRemoved",
  recordExpiries: "expiriesRecorded",
  endContracts: "contractsEnded",
  requestSeals: "sealsRequested",
  requestWebhooks: "webhooksRequested",
  removeDeliveries: "deliveriesRemoved",
  removeEnds: "endsRemoved",
} as const satisfies Record<string, keyof SweepReport>;

/** A request to send the due deliveries of one endpoint. The worker reads them from Postgres. */
export const webhookJob = z.object({ endpointId: z.string() });

/** The results of one job. */
export const webhookReport = z.object({
  delivered: z.number(),
  /** Failed attempts that are retried later. */
  retried: z.number(),
  /** Deliveries that are not retried. */
  failed: z.number(),
});
export type WebhookReport = z.output<typeof webhookReport>;

/** One pass of the log's sequencer. The sequencer reads its work from Postgres. */
export const logJob = z.object({});

/** The results of one pass. */
export const logReport = z.object({
  /** Leaves that this pass added to the tree. */
  placed: z.number(),
  /** Number of leaves in the tree. */
  size: z.number(),
  /** Number of leaves in the served checkpoint. */
  published: z.number(),
  /** Witnesses that cosigned in this pass. */
  cosigned: z.number(),
  /** The anchor files, and the number of leaves in each one's checkpoint; null for a missing file. */
  anchors: z.array(z.object({ file: z.string(), size: z.number().nullable() })),
  /** Witnesses that contradicted the log without a proof when they were last asked, while the others met the quorum. */
  claims: z.number(),
  /** Why the pass stopped before it served a checkpoint, such as an anchor that contradicts the database. Null if it did not stop. */
  refused: z.string().nullable(),
  /** What stopped it: the database contradicts what was signed, too few witnesses answer, or an anchor cannot be used. */
  obstacle: z.enum(["contradiction", "witnesses", "anchor"]).nullable(),
  durationMs: z.number(),
});
export type LogReport = z.output<typeof logReport>;
