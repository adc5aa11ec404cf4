import { serveMetrics } from "../src/core/metrics/serve-metrics.ts";
import { openWorkerProbe } from "../src/core/servers/probe-servers.ts";
import type { WorkerService } from "../src/open/open-worker-service.ts";
import { WINGS } from "../src/open/wings.ts";
import { closeAll } from "../src/platform/lifetime.ts";
import type { RunningWorker } from "../src/platform/queues/worker.ts";
import type { PrepareWorker } from "../src/wing.ts";

/** Each queue's worker. A process loads only the workers of its queues. */
const WORKERS: Partial<Record<string, () => Promise<{ prepare: PrepareWorker<WorkerService> }>>> = Object.assign(
  {
    redeem: () => import("./redeem.ts"),
    seal: () => import("./seal.ts"),
    sweep: () => import("./sweep.ts"),
  },
  ...WINGS.map(({ workers }) => workers),
);

/**
 * Opens the workers of the queues in WORKER_QUEUES, and listens on METRICS_PORT. `start` waits for the database and
 * starts the workers. After that, the process reports that it is ready, as long as Redis accepts jobs. When the service
 * closes, the workers close first.
 * @throws TlogSettingsError when the process serves the queue `log` and the log's key or policy cannot be used.
 */
export async function prepareWorkers(service: WorkerService) {
  const all = await Promise.all(
    service.config.workerQueues.map(async (queue) => {
      const module = await WORKERS[queue]?.();
      const worker = await module?.prepare(service);
      return worker ? { queue, ...worker } : null;
    }),
  );
  const prepared = all.filter((worker) => worker !== null);
  let running: RunningWorker[] = [];
  let isClosing = false;
  const takesJobs = openWorkerProbe(service);
  const metrics = await serveMetrics(
    service,
    async () => running.some((worker) => worker.isReady?.() ?? true) && (await takesJobs()),
  );
  if (metrics !== null) service.use(metrics);
  service.use({
    close() {
      isClosing = true;
      return closeAll(running);
    },
  });
  return {
    /** Everything that the jobs of all these workers need. */
    ctx: Object.assign({ ...service }, ...prepared.map(({ ctx }) => ctx)),
    /** The queues that the process serves. */
    queues: prepared.map(({ queue }) => queue),
    metricsPort: metrics?.port,
    async start() {
      await service.deployment.ready();
      if (!isClosing) running = prepared.map((worker) => worker.start());
    },
  };
}
