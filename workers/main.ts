import { readWorkerConfig } from "../src/config.ts";
import { openLog } from "../src/log.ts";
import { serveMetrics } from "../src/metrics/serve-metrics.ts";
import { openWorkerService } from "../src/open-worker-service.ts";
import { configureProcess, drainOnSignal } from "../src/process.ts";
import type { RunningWorker } from "../src/queues/worker.ts";
import { openTraces } from "../src/traces/open-traces.ts";
import { prepareWorkers } from "./prepare-workers.ts";

// A worker process for the queues that WORKER_QUEUES names. Any number of processes may run.
const config = configureProcess(readWorkerConfig);
try {
  const traces = await openTraces(config.traces, "worker", openLog(config.logLevel, "worker"));
  const service = openWorkerService(config, traces);
  const prepared = await prepareWorkers(service);
  let workers: RunningWorker[] = [];
  const metrics = await serveMetrics(service, () => workers.some((worker) => worker.isReady?.() ?? true));
  // Signals must be handled even while the process waits for the database.
  drainOnSignal(service.log, async () => {
    await Promise.all(workers.map((worker) => worker.close()));
    await metrics?.close();
    await service.close();
  });
  await service.deployment.ready();
  workers = prepared.map(({ start }) => start());
  service.log.info({ queues: config.workerQueues }, "working");
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exit(1);
}
