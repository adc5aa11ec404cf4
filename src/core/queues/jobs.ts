import { z } from "zod";
import { REFUSAL_CODES } from "../../platform/api/errors.ts";
import { redeemRequest } from "../redeem/api/redeem.ts";

const { note } = redeemRequest.shape;

/** One attempt to redeem one voucher: the request, with the voucher's id instead of its code, and the token's hash instead of the token. */
export const redeemJob = z.object({
  note,
  /** Never changed here: the API ends the attempts of exactly this reference, also that of another release. */
  externalRef: z.string(),
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
  /** Reservations that ended unused a long time ago, deleted. */
  reservationsRemoved: z.number(),
  /** Finished jobs that were kept long enough, removed from their queues. */
  jobsRemoved: z.number(),
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
  removeReservations: "reservationsRemoved",
  removeJobs: "jobsRemoved",
} as const satisfies Record<string, keyof SweepReport>;
