import { readConfig } from "../src/config.ts";
import { openWorkerContext } from "../src/context.ts";
import { openLog } from "../src/log.ts";
import { serveMetrics } from "../src/metrics/serve-metrics.ts";
import { configureProcess, drainOnSignal } from "../src/process.ts";
import { openTraces } from "../src/traces/open-traces.ts";
import { startRedeemWorker } from "./redeem.ts";
import { startSealWorker } from "./seal.ts";
import { startSweepWorker } from "./sweep.ts";

// A worker process: works on the queues that WORKER_QUEUES names. Any number of them may run.
const START = { redeem: startRedeemWorker, seal: startSealWorker, sweep: startSweepWorker };

const config = configureProcess(readConfig);
try {
  const ctx = openWorkerContext(config, await openTraces(config.traces, "worker", openLog(config.logLevel, "worker")));
  const metrics = await serveMetrics(ctx);
  const workers = config.workerQueues.map((queue) => START[queue](ctx));
  drainOnSignal(ctx.log, async () => {
    await Promise.all(workers.map((worker) => worker.close()));
    await metrics?.close();
    await ctx.close();
  });
  ctx.log.info({ queues: config.workerQueues }, "working");
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exit(1);
}
