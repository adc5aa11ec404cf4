import type pg from "pg";
import type { Logger } from "pino";
import type { RandomBytes } from "../../platform/base32.ts";
import type { Config } from "../../platform/config.ts";
import type { DatabaseFence } from "../../platform/db/database-fence.ts";
import type { FinishedJobs } from "../../platform/queues/finished-jobs.ts";
import { selectOverdueSeals } from "../chain/db/events.ts";
import { recordExpiries } from "../chain/record-expiries.ts";
import { recordSuspensions } from "../chain/record-suspensions.ts";
import type { SealRequests } from "../chain/seal-job.ts";
import type { VerifyResult } from "../chain/verify-chains.ts";
import { moveCompleteUntil } from "../redeem/db/redemptions.ts";
import { removeEnds } from "../redeem/end-references.ts";
import { checkChains } from "./check-chains.ts";
import { expireReservations } from "./expire-reservations.ts";
import { removeReservations } from "./remove-reservations.ts";
import type { SweepReport } from "./report.ts";

/** Maximum time of a pass. Even with late tasks, it fits into CLOSE_MAX_MS of a stopping process. Milliseconds. */
const PASS_MAX_MS = 8_000;
/** Maximum time of each task that works in several steps. Milliseconds. */
const TASK_MAX_MS = 2_000;
/** The part of the pass that stays reserved for each later task, however long the earlier tasks take. Milliseconds. */
const TASK_MIN_MS = 250;
/**
 * How long an event may be Pending before the sweeper requests its seal again, as the job may be lost. Milliseconds.
 */
const OVERDUE_AFTER_MS = 5_000;
/** Maximum number of events for which one pass requests seals. */
const EVENTS_MAX = 1_000;

export interface Deps {
  pool: pg.Pool;
  deployment: Pick<DatabaseFence, "clock">;
  finishedJobs: FinishedJobs;
  sealRequests: SealRequests;
  randomBytes: RandomBytes;
  config: Config;
  log: Logger;
  endRuns: AbortSignal;
}

/** Tasks of a pass, by name. By default, each returns the number of items that it has changed. */
export type Tasks<Ctx, Name extends string = string, Result = number> = Readonly<
  Record<Name, (ctx: Ctx, untilMs: number) => Promise<Result>>
>;

/** The sweeper's tasks, without those of the optional parts of the service. */
export const CORE_TASKS = {
  expireReservations,
  recordExpiries,
  recordSuspensions,
  requestSeals,
  removeEnds,
  removeReservations,
  removeJobs: ({ finishedJobs }, untilMs) => finishedJobs.removeOld(untilMs),
} satisfies Tasks<Deps>;

type UncountedTasks<Ctx> = Tasks<Ctx, string, unknown>;

/** All tasks of a pass, in order. The tasks after `tasks` count no items. Other rooms add theirs as `more`. */
export function orderTasks<Ctx extends Deps>(tasks: Tasks<Ctx>, more: UncountedTasks<Ctx>): UncountedTasks<Ctx> {
  return { ...tasks, moveCompleteUntil, ...more, checkChains };
}

/**
 * One pass of the sweeper. Passes may overlap. A failed task does not stop the others, and the next pass retries it. A
 * pass has one deadline, and each task has a part of that time.
 */
export async function runPass<Ctx extends Deps, Name extends string>(
  ctx: Ctx,
  tasks: Tasks<Ctx, Name>,
  more: UncountedTasks<Ctx>,
): Promise<SweepReport<Name>> {
  const startedAt = performance.now();
  const failures: Record<string, string> = {};
  const results: Record<string, unknown> = {};
  const all = Object.entries(orderTasks(tasks, more));
  for (const [index, [name, task]] of all.entries()) {
    // A closing process begins no further task.
    if (ctx.endRuns.aborted) break;
    const reservedMs = (all.length - index - 1) * TASK_MIN_MS;
    const untilMs = Math.min(performance.now() + TASK_MAX_MS, startedAt + PASS_MAX_MS - reservedMs);
    try {
      results[name] = await task(ctx, untilMs);
    } catch (error) {
      ctx.log.error({ err: error, task: name }, "a task of the sweeper failed");
      failures[name] = error instanceof Error ? error.message : String(error);
    }
  }
  const { vouchers = 0, broken = [] } = (results.checkChains ?? {}) as Partial<VerifyResult>;
  return {
    items: Object.fromEntries(Object.keys(tasks).map((name) => [name, results[name] ?? 0])) as Record<Name, number>,
    chainsChecked: vouchers,
    chainsBroken: broken.length,
    failures,
    durationMs: Math.round(performance.now() - startedAt),
  };
}

/** Whether a pass changed nothing and found no fault. Verified chains do not count as a change. */
export function isIdle(report: SweepReport): boolean {
  const nothingDone = Object.values(report.items).every((count) => count === 0);
  return nothingDone && report.chainsBroken === 0 && Object.keys(report.failures).length === 0;
}

/** Adds seal jobs for overdue Pending events, while the queue has room. Returns the number of vouchers. */
async function requestSeals({ pool, sealRequests }: Deps): Promise<number> {
  return sealRequests.add(await selectOverdueSeals(pool, OVERDUE_AFTER_MS, EVENTS_MAX));
}
