import type { SweepReport } from "../core/sweep/report.ts";
import { CORE_TASKS, type Deps, runPass } from "../core/sweep/sweep.ts";
import { countActivity } from "../watch/count-activity.ts";
import { type TaskDeps, WING_TASKS } from "./wings/sweeper.ts";

/** One pass of the sweeper, with the tasks of the core and of all wings. */
export function sweep(ctx: Deps & TaskDeps): Promise<SweepReport> {
  return runPass(ctx, { ...CORE_TASKS, ...WING_TASKS }, { countActivity });
}
