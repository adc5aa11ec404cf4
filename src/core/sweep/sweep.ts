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

type Task<Deps, Result> = (ctx: Deps, untilMs: number) => Promise<Result>;
/** Tasks of a pass. Each returns the number of items that it has changed. */
export type Tasks<Deps, Name extends string = string> = Readonly<Record<Name, Task<Deps, number>>>;
/** Tasks of a pass that return no number. */
type Uncounted<Deps> = Readonly<Record<string, Task<Deps, void>>>;

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

/** The core's tasks that return no number. The check of chains is not in this list, because it returns two numbers. */
const CORE_UNCOUNTED: Uncounted<Deps> = { moveCompleteUntil };

/** The names of the tasks that can fail in a pass. */
export function nameTasks(tasks: Tasks<never>, uncounted: Uncounted<never>): string[] {
  return [tasks, CORE_UNCOUNTED, uncounted].flatMap((each) => Object.keys(each)).concat("checkChains");
}

/**
 * One pass of the sweeper: first the tasks that return a number, in order, then the others. Passes may overlap. A
 * failed task does not stop the others, and the next pass retries it. A pass has one deadline, and each task has a part
 * of that time.
 */
export async function runPass<Ctx extends Deps, Name extends string>(
  ctx: Ctx,
  tasks: Tasks<Ctx, Name>,
  uncounted: Uncounted<Ctx>,
): Promise<SweepReport<Name>> {
  const startedAt = performance.now();
  const failures: Record<string, string> = {};
  const others = { ...CORE_UNCOUNTED, ...uncounted };
  let left = Object.keys(tasks).length + Object.keys(others).length + 1;
  const run = async <T>(name: string, task: Task<Ctx, T>, fallback: T): Promise<T> => {
    left -= 1;
    // A closing process begins no further task.
    if (ctx.endRuns.aborted) return fallback;
    const untilMs = Math.min(performance.now() + TASK_MAX_MS, startedAt + PASS_MAX_MS - left * TASK_MIN_MS);
    try {
      return await task(ctx, untilMs);
    } catch (error) {
      ctx.log.error({ err: error, task: name }, "a task of the sweeper failed");
      failures[name] = error instanceof Error ? error.message : String(error);
      return fallback;
    }
  };
  const items = {} as Record<Name, number>;
  for (const name of Object.keys(tasks) as Name[]) items[name] = await run(name, tasks[name], 0);
  for (const [name, task] of Object.entries(others)) await run(name, task, undefined);
  const checked = await run("checkChains", checkChains, { vouchers: 0, events: 0, erased: 0, broken: [] });
  return {
    items,
    chainsChecked: checked.vouchers,
    chainsBroken: checked.broken.length,
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
