import { readConfig } from "../src/config.ts";
import { openWorkerContext } from "../src/context.ts";
import { configureProcess, drainOnSignal } from "../src/process.ts";
import { startRedeemWorker } from "./redeem.ts";
import { startSealWorker } from "./seal.ts";
import { startSweepWorker } from "./sweep.ts";

// A worker process: works on the queues that WORKER_QUEUES names. Any number of them may run.
const START = { redeem: startRedeemWorker, seal: startSealWorker, sweep: startSweepWorker };

const config = configureProcess(readConfig);
const ctx = openWorkerContext(config);
const workers = config.workerQueues.map((queue) => START[queue](ctx));
ctx.log.info({ queues: config.workerQueues }, "working");
drainOnSignal(ctx.log, async () => {
  await Promise.all(workers.map((worker) => worker.close()));
  await ctx.close();
});
