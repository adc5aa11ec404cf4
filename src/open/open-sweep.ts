import { removeUnseenProcesses } from "../core/processes/db/processes.ts";
import type { SweepReport } from "../core/sweep/report.ts";
import { CORE_TASKS, type Deps, nameTasks, runPass } from "../core/sweep/sweep.ts";
import { countActivity } from "../watch/count-activity.ts";
import { type TaskDeps, WING_TASKS } from "./wings/sweeper.ts";

/** The tasks of the core and of all wings. */
const TASKS = { ...CORE_TASKS, ...WING_TASKS };
const UNCOUNTED = {
  countActivity,
  removeProcesses: async ({ pool }: Deps) => void (await removeUnseenProcesses(pool)),
};

/** The names of the tasks that report how many items they have changed, and of all that can fail. */
export const SWEEP_TASKS = { counted: Object.keys(TASKS), all: nameTasks(TASKS, UNCOUNTED) };

/** One pass of the sweeper. */
export function sweep(ctx: Deps & TaskDeps): Promise<SweepReport<keyof typeof TASKS>> {
  return runPass(ctx, TASKS, UNCOUNTED);
}
