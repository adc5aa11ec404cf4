import type { WorkerContext } from "../src/context.ts";
import type { QueueName } from "../src/queues/catalog.ts";
import type { RunningWorker } from "../src/queues/worker.ts";
import { startLogWorker } from "./log.ts";
import { startRedeemWorker } from "./redeem.ts";
import { startSealWorker } from "./seal.ts";
import { startSweepWorker } from "./sweep.ts";
import { startWebhookWorker } from "./webhook.ts";

const START: Record<QueueName, (ctx: WorkerContext) => RunningWorker> = {
  redeem: startRedeemWorker,
  seal: startSealWorker,
  sweep: startSweepWorker,
  log: startLogWorker,
  webhook: startWebhookWorker,
};

/** Starts the workers of the queues that WORKER_QUEUES names. */
export function startWorkers(ctx: WorkerContext): RunningWorker[] {
  return ctx.config.workerQueues.map((queue) => START[queue](ctx));
}
