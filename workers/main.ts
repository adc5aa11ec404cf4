import { readWorkerConfig } from "../src/config.ts";
import { openWorkerContext } from "../src/context.ts";
import { openLog } from "../src/log.ts";
import { serveMetrics } from "../src/metrics/serve-metrics.ts";
import { configureProcess, drainOnSignal } from "../src/process.ts";
import type { RunningWorker } from "../src/queues/worker.ts";
import { openTraces } from "../src/traces/open-traces.ts";
import { startWorkers } from "./start-workers.ts";

// A worker process for the queues that WORKER_QUEUES names. Any number of processes may run.
const config = configureProcess(readWorkerConfig);
try {
  const ctx = openWorkerContext(config, await openTraces(config.traces, "worker", openLog(config.logLevel, "worker")));
  let workers: RunningWorker[] = [];
  const metrics = await serveMetrics(ctx, () => workers.length > 0);
  // Signals must be handled even while the process waits for the database.
  drainOnSignal(ctx.log, async () => {
    await Promise.all(workers.map((worker) => worker.close()));
    await metrics?.close();
    await ctx.close();
  });
  await ctx.deployment.ready();
  workers = startWorkers(ctx);
  ctx.log.info({ queues: config.workerQueues }, "working");
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exit(1);
}
