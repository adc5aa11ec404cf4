import type pg from "pg";
import type { Config } from "../../platform/config.ts";
import type { GroupCommitter } from "../commit/group-committer.ts";
import { openVoucherCommitter } from "../commit/voucher-committer.ts";
import { type Observing, observeBatches } from "../metrics/observe-batches.ts";
import { readChainsToSeal, sealChains } from "./seal-events.ts";
import type { SealJob, SealReply } from "./seal-job.ts";

/** Maximum wait for a voucher's lock. After it, the seal job fails, and the sweeper adds another. Milliseconds. */
const LOCK_WAIT_MS = 5_000;

/** A job's result is the number of events that it sealed, or null if the voucher stayed locked. */
type SealCommitter = GroupCommitter<SealJob, number | null>;

/** Opens a worker's group committer for seal jobs. Calls `onAnnounced` after commits that wrote to the outbox. */
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
    // The committer shares its capacity among vouchers, because a job does not contain its organization.
    ownerOf: ({ voucherId }) => voucherId,
  });
}

/** Runs one seal job. @throws Error when the voucher stays locked. */
export async function runSealJob(ctx: { sealCommitter: SealCommitter }, job: SealJob): Promise<SealReply> {
  const sealed = await ctx.sealCommitter.submit({ ...job });
  if (sealed === null) throw new Error(`voucher ${job.voucherId} stays locked`);
  return { sealed };
}
