import { serveMetrics } from "../src/core/metrics/serve-metrics.ts";
import { learnRedis } from "../src/open/open-redis.ts";
import { openWorkerService } from "../src/open/open-worker-service.ts";
import { readWorkerConfig } from "../src/platform/config.ts";
import { openLogger } from "../src/platform/logger.ts";
import { configureProcess, drainOnSignal, failStart } from "../src/platform/process.ts";
import type { RunningWorker } from "../src/platform/queues/worker.ts";
import { openTraces } from "../src/platform/traces/open-traces.ts";
import { prepareWorkers } from "./prepare-workers.ts";

// A worker process for the queues that WORKER_QUEUES names. Any number of processes may run.
const given = configureProcess(readWorkerConfig);
try {
  const config = await learnRedis(given);
  const traces = await openTraces(config.traces, "worker", openLogger(config.logLevel, "worker"));
  const service = openWorkerService(config, traces);
  const prepared = await prepareWorkers(service);
  let workers: RunningWorker[] = [];
  const metrics = await serveMetrics(service, () => workers.some((worker) => worker.isReady?.() ?? true));
  // Signals must be handled even while the process waits for the database.
  const drain = async () => {
    await Promise.all(workers.map((worker) => worker.close()));
    await metrics?.close();
    await service.close();
  };
  drainOnSignal(service.log, drain, service.redisWatch.mustEnd);
  await service.deployment.ready();
  workers = prepared.map(({ start }) => start());
  service.log.info({ queues: config.workerQueues }, "working");
} catch (error) {
  failStart(error);
}
