import type { WorkerService } from "../src/open/open-worker-service.ts";
import type { QueueName } from "../src/platform/queues/queue-settings.ts";
import type { RunningWorker } from "../src/platform/queues/worker.ts";
import { WING_WORKERS } from "./wings.ts";

/** What the jobs of one queue need, and the start of its worker. */
interface PreparedWorker {
  ctx: WorkerService;
  start: () => RunningWorker;
}

type Prepare = (service: WorkerService) => PreparedWorker | null | Promise<PreparedWorker | null>;

/**
 * Each queue's worker, loaded only by processes that serve the queue. Null in a process that lacks the queue's secret.
 * The queue of a wing that was taken away has none.
 */
const WORKERS: Partial<Record<QueueName, () => Promise<{ prepare: Prepare }>>> = {
  redeem: () => import("./redeem.ts"),
  seal: () => import("./seal.ts"),
  sweep: () => import("./sweep.ts"),
  ...WING_WORKERS,
};

/**
 * Opens the workers of the queues that WORKER_QUEUES names. They start once the database is ready.
 * @throws TlogSettingsError when the process serves the queue `log` and the log's key or policy cannot be used.
 */
export async function prepareWorkers(service: WorkerService): Promise<PreparedWorker[]> {
  const modules = await Promise.all(service.config.workerQueues.flatMap((queue) => WORKERS[queue]?.() ?? []));
  const workers = await Promise.all(modules.map(({ prepare }) => prepare(service)));
  return workers.filter((worker) => worker !== null);
}
