import type pg from "pg";
import type { Logger } from "pino";
import type { Config } from "../../config.ts";
import { SWEEP_TASKS, type SweepReport } from "../../contract/jobs.ts";
import { DELIVERIES_KEPT_DAYS } from "../../contract/webhook-deliveries.ts";
import { countNextActivity, findTrustedAt } from "../../db/activity.ts";
import { endOverdueContracts } from "../../db/contracts.ts";
import type { Deployment } from "../../db/deployment.ts";
import { selectOverdueSeals } from "../../db/events.ts";
import { closeRedemptions, deleteOldEnds, findCompleteUntil } from "../../db/redemptions.ts";
import { inTransaction } from "../../db/transaction.ts";
import {
  deleteDeletedEndpoints,
  deleteOldDeliveries,
  endPendingDeliveries,
  selectEndpointsWithDue,
} from "../../db/webhook-deliveries.ts";
import type { RandomBytes } from "../../domain/codes.ts";
import type { Leases } from "../../holds/lease.ts";
import type { WorkerMetrics } from "../../metrics/metrics.ts";
import type { FinishedJobs } from "../../queues/finished-jobs.ts";
import type { SealRequests, WebhookRequests } from "../../queues/job-requests.ts";
import { recordExpiries } from "../chain/record-expiries.ts";
import { checkChains } from "./check-chains.ts";
import { expireReservations } from "./expire-reservations.ts";
import { removeOrphanLeases, restoreLeases } from "./reconcile-leases.ts";
import { removeReservations } from "./remove-reservations.ts";

/** Time limit of each task that works in several steps. So a pass ends within the time that a stopping process has. Milliseconds. */
const TASK_MAX_MS = 2_000;
/** Most contracts that one pass ends. */
const CONTRACTS_MAX = 1_000;
/** Most ends of references that one pass deletes: more than an organization's calls write between two passes, and some 100 ms. */
const ENDS_MAX = 10_000;
/** An event Pending for longer than this has lost its seal job, or the job waits for a worker. Milliseconds. */
const OVERDUE_AFTER_MS = 5_000;
/** Most events that one pass requests seals for. */
const EVENTS_MAX = 1_000;
/** Most endpoints that get a webhook job in one pass. */
const ENDPOINTS_MAX = 10_000;
/** Deliveries that one transaction ends or deletes: some 20 ms. */
const PORTION = 1_000;

interface Deps {
  pool: pg.Pool;
  deployment: Pick<Deployment, "clock">;
  finishedJobs: FinishedJobs;
  leases: Leases;
  sealRequests: SealRequests;
  webhookRequests: WebhookRequests;
  randomBytes: RandomBytes;
  config: Config;
  log: Logger;
}

/** Each returns how many items it has changed. In the order in which a pass runs them. */
const TASKS: Record<keyof typeof SWEEP_TASKS, (ctx: Deps, untilMs: number) => Promise<number>> = {
  expireReservations,
  restoreLeases,
  removeOrphanLeases,
  recordExpiries,
  endContracts: ({ pool }) => endOverdueContracts(pool, CONTRACTS_MAX),
  requestSeals,
  requestWebhooks,
  removeDeliveries,
  removeEnds: ({ pool }) => deleteOldEnds(pool, ENDS_MAX),
  removeReservations,
  removeJobs: ({ finishedJobs }, untilMs) => finishedJobs.removeOld(untilMs),
};

/** One pass of the sweeper. Passes may overlap; a failed task does not stop the others, and the next pass retries it. */
export async function sweep(ctx: Deps): Promise<SweepReport> {
  const startedAt = performance.now();
  const failures: Record<string, string> = {};
  const run = async <T>(task: string, work: (ctx: Deps, untilMs: number) => Promise<T>, fallback: T): Promise<T> => {
    try {
      return await work(ctx, performance.now() + TASK_MAX_MS);
    } catch (error) {
      ctx.log.error({ err: error, task }, "a task of the sweeper failed");
      failures[task] = error instanceof Error ? error.message : String(error);
      return fallback;
    }
  };
  const changed = {} as Record<(typeof SWEEP_TASKS)[keyof typeof TASKS], number>;
  for (const task of Object.keys(TASKS) as (keyof typeof TASKS)[])
    changed[SWEEP_TASKS[task]] = await run(task, TASKS[task], 0);
  await run("countActivity", countActivity, undefined);
  const checked = await run("checkChains", checkChains, { vouchers: 0, events: 0, broken: [] });
  return {
    ...changed,
    chainsChecked: checked.vouchers,
    chainsBroken: checked.broken.length,
    failures,
    durationMs: Math.round(performance.now() - startedAt),
  };
}

/** Whether a pass changed nothing and found no fault. Verified chains do not count as a change. */
export function isIdle(report: SweepReport): boolean {
  const nothingDone = Object.values(SWEEP_TASKS).every((items) => report[items] === 0);
  return nothingDone && report.chainsBroken === 0 && Object.keys(report.failures).length === 0;
}

/** Records one pass of the sweeper. */
export function recordSweep(metrics: WorkerMetrics, report: SweepReport): void {
  metrics.sweepDuration.with().observe(report.durationMs / 1_000);
  for (const [task, items] of Object.entries(SWEEP_TASKS)) metrics.sweepItems.with(task).inc(report[items]);
  for (const task of Object.keys(report.failures)) metrics.sweepFailures.with(task).inc();
  metrics.chainsChecked.with().inc(report.chainsChecked);
}

/** Adds seal jobs for overdue Pending events, as far as the queue has room; returns the number of vouchers. */
async function requestSeals({ pool, sealRequests }: Deps): Promise<number> {
  return sealRequests.add(await selectOverdueSeals(pool, OVERDUE_AFTER_MS, EVENTS_MAX));
}

/** Adds a webhook job for each endpoint with due deliveries, such as retries or deliveries whose job was lost. Returns the number of endpoints. */
export async function requestWebhooks({
  pool,
  webhookRequests,
}: Pick<Deps, "pool" | "webhookRequests">): Promise<number> {
  const endpointIds = await selectEndpointsWithDue(pool, ENDPOINTS_MAX);
  await webhookRequests.add(endpointIds);
  return endpointIds.length;
}

/** Ends Pending deliveries of disabled endpoints, and deletes old deliveries and deleted endpoints. Returns the number of deliveries. */
export async function removeDeliveries({ pool }: { pool: pg.Pool }, untilMs: number): Promise<number> {
  let count = 0;
  for (const step of [
    () => inTransaction(pool, (tx) => endPendingDeliveries(tx, PORTION)),
    () => deleteOldDeliveries(pool, DELIVERIES_KEPT_DAYS, PORTION),
  ]) {
    let changed: number;
    do {
      changed = await step();
      count += changed;
    } while (changed > 0 && performance.now() < untilMs);
  }
  await deleteDeletedEndpoints(pool);
  return count;
}

/** Counts redemptions and claims by minute and hour, up to the time before which lists of redemptions are complete. */
export async function countActivity(
  { pool, deployment }: Pick<Deps, "pool" | "deployment">,
  untilMs: number,
): Promise<void> {
  await deployment.clock.ready();
  const trustedAt = await findTrustedAt(pool);
  await closeRedemptions(pool, deployment.clock.steadyNow());
  const completeUntil = await findCompleteUntil(pool);
  while ((await countNextActivity(pool, completeUntil, trustedAt)) && performance.now() < untilMs);
}
