import type pg from "pg";
import type { Config } from "../../platform/config.ts";
import type { GroupCommitter } from "../commit/group-committer.ts";
import { openVoucherCommitter } from "../commit/voucher-committer.ts";
import { type Observing, observeBatches } from "../metrics/observe-batches.ts";
import { readChainsToSeal, sealChains } from "./seal-events.ts";
import type { SealJob, SealReply } from "./seal-job.ts";

/**
 * Maximum wait for the lock of a voucher's row. After it, the seal job fails, and the sweeper requests the seal again.
 * Milliseconds.
 */
const LOCK_WAIT_MS = 5_000;

/** The result of a job is the number of events that it sealed, or null if the voucher stayed locked. */
type SealCommitter = GroupCommitter<SealJob, number | null>;

/**
 * Opens the group committer for a worker's seal jobs. Calls `onAnnounced` after each commit that wrote events for
 * webhook endpoints to the outbox.
 */
export function openSealCommitter(
  ctx: Observing & { pool: pg.Pool; config: Config; onAnnounced: () => void },
): SealCommitter {
  const idsOf = (jobs: readonly SealJob[]) => jobs.map(({ voucherId }) => voucherId);
  return openVoucherCommitter({
    pool: ctx.pool,
    read: (tx, jobs) => readChainsToSeal(tx, [...new Set(idsOf(jobs))]),
    decide: async (jobs, unsealed) => sealChains(idsOf(jobs), unsealed, ctx.onAnnounced),
    busy: null,
    observer: observeBatches(ctx, "seals"),
    lockWaitMs: LOCK_WAIT_MS,
    waitingMax: ctx.config.workerConcurrency,
    isBounded: true,
    // A job has no organization. Each job waits only for its own voucher.
    ownerOf: ({ voucherId }) => voucherId,
  });
}

/** Runs one seal job. @throws Error when the voucher stays locked. */
export async function runSealJob(ctx: { sealCommitter: SealCommitter }, job: SealJob): Promise<SealReply> {
  const sealed = await ctx.sealCommitter.submit({ ...job });
  if (sealed === null) throw new Error(`voucher ${job.voucherId} stays locked`);
  return { sealed };
}
