import type { SweepReport } from "../core/sweep/report.ts";
import { CORE_TASKS, type Deps, runPass } from "../core/sweep/sweep.ts";
import { countActivity } from "../watch/count-activity.ts";
import { removeDeliveries, requestWebhooks } from "../webhooks/sweep-tasks.ts";

const TASKS = { ...CORE_TASKS, requestWebhooks, removeDeliveries };

/** One pass of the sweeper, with the tasks of the core and of all features. */
export function sweep(ctx: Deps & Parameters<typeof requestWebhooks>[0]): Promise<SweepReport> {
  return runPass(ctx, TASKS, { countActivity });
}
