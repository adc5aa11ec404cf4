import type { WorkerContext } from "../context.ts";
import { endOverdueContracts } from "../db/contracts.ts";
import type { SweepReport } from "../queues/catalog.ts";
import { checkChains } from "./check-chains.ts";
import { expireHolds } from "./expire-holds.ts";
import { removeOrphanLeases, restoreLeases } from "./reconcile-leases.ts";
import { recordExpiries } from "./record-expiries.ts";
import { requestSeals } from "./request-seals.ts";

/**
 * How long a task that goes on until nothing is left may go on in one pass; what is left is the next pass's. The others take a fixed
 * number at most. All of them together end before a process that is told to stop must have stopped. Milliseconds.
 */
const TASK_MAX_MS = 2_000;

/** Contracts whose end one pass records. */
const CONTRACTS_MAX = 1_000;

/**
 * One pass of the sweeper: catches up on everything that nobody waits for. Any number may run at the same time. A task that fails
 * leaves the others alone and is tried again by the next pass.
 */
export async function sweep(ctx: WorkerContext): Promise<SweepReport> {
  const startedAt = performance.now();
  const failures: Record<string, string> = {};
  const run = async <T>(task: string, work: (untilMs: number) => Promise<T>, otherwise: T): Promise<T> => {
    try {
      return await work(performance.now() + TASK_MAX_MS);
    } catch (error) {
      ctx.log.error({ err: error, task }, "a task of the sweeper failed");
      failures[task] = error instanceof Error ? error.message : String(error);
      return otherwise;
    }
  };
  const holdsExpired = await run("expireHolds", (until) => expireHolds(ctx, until), 0);
  const leasesRestored = await run("restoreLeases", (until) => restoreLeases(ctx, until), 0);
  const leasesRemoved = await run("removeOrphanLeases", (until) => removeOrphanLeases(ctx, until), 0);
  const expiriesRecorded = await run("recordExpiries", (until) => recordExpiries(ctx, until), 0);
  const contractsEnded = await run("endContracts", () => endOverdueContracts(ctx.pool, CONTRACTS_MAX), 0);
  const sealsRequested = await run("requestSeals", () => requestSeals(ctx), 0);
  const checked = await run("checkChains", () => checkChains(ctx), { vouchers: 0, events: 0, broken: [] });
  return {
    holdsExpired,
    leasesRestored,
    leasesRemoved,
    expiriesRecorded,
    contractsEnded,
    sealsRequested,
    chainsChecked: checked.vouchers,
    chainsBroken: checked.broken.length,
    failures,
    durationMs: Math.round(performance.now() - startedAt),
  };
}
