import { z } from "zod";
import { defineQueue } from "../../platform/queues/queue-settings.ts";

/** One pass of the sweeper. The sweeper reads its work from Postgres. */
const sweepJob = z.object({});

/** The results of one pass. */
const sweepReport = z.object({
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
  /** Deleted ends of references on which no attempt can still depend. */
  endsRemoved: z.number(),
  /** Deleted reservations that ended unused a long time ago. */
  reservationsRemoved: z.number(),
  /** Finished jobs that were removed from their queues after their time of retention. */
  jobsRemoved: z.number(),
  chainsChecked: z.number(),
  chainsBroken: z.number(),
  /** Error messages of failed tasks, by task. The next pass retries them. */
  failures: z.record(z.string(), z.string()),
  durationMs: z.number(),
});
export type SweepReport = z.output<typeof sweepReport>;

/**
 * The tasks of a pass, with the report field that counts the results of each. The check of chains is not listed,
 * because it has two counts.
 */
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

/** The tasks without a count of their own in the report. */
export const UNCOUNTED_TASKS = ["moveCompleteUntil", "countActivity", "checkChains"] as const;

export const sweepQueue = defineQueue("sweep", { data: sweepJob, reply: sweepReport });
