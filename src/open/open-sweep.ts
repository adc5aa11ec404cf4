import { removeUnseenProcesses } from "../core/processes/db/processes.ts";
import type { SweepReport } from "../core/sweep/report.ts";
import { CORE_TASKS, type Deps, orderTasks, runPass, type Tasks } from "../core/sweep/sweep.ts";
import type { QueueResources } from "../platform/queues/open-queue.ts";
import { countActivity } from "../watch/db/activity.ts";
import type { WorkerService } from "./open-worker-service.ts";
import { loadParts } from "./wings.ts";

const OPENERS = await loadParts("sweeper");

/** The dependencies of a pass. */
interface SweepDeps extends Deps {
  sweepTasks: OpenTasks;
}

type CoreTask = keyof typeof CORE_TASKS;
type OpenTasks = Tasks<Deps, CoreTask>;

const UNCOUNTED = {
  countActivity,
  removeProcesses: ({ pool }: Deps) => removeUnseenProcesses(pool),
};

/** Opens the tasks that report how many items they have changed. */
export function openSweepTasks(service: WorkerService & { queueLinks: QueueResources }): OpenTasks {
  return Object.assign({}, CORE_TASKS, ...OPENERS.map((open) => open(service)));
}

/** The names of all tasks whose failures are counted. */
export const nameSweepTasks = ({ sweepTasks }: SweepDeps) => Object.keys(orderTasks(sweepTasks, UNCOUNTED));

/** One pass of the sweeper. */
export function sweep(ctx: SweepDeps): Promise<SweepReport<CoreTask>> {
  return runPass(ctx, ctx.sweepTasks, UNCOUNTED);
}
