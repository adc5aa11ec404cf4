import { createApp } from "../../../src/app.ts";
import { readApiConfig } from "../../../src/config.ts";
import { type ApiContext, openApiContext } from "../../../src/context.ts";
import { listen } from "../../../src/http/server.ts";
import { configureProcess, drainOnSignal } from "../../../src/process.ts";
import type { Answer } from "../../../src/queues/awaited-queue.ts";
import type { RedeemJob, RedeemReply } from "../../../src/queues/catalog.ts";
import { openBurnLanes, runRedeemJob } from "../../../src/services/burn-vouchers.ts";

// Baseline (d), the ceiling: the service's own API with the group commit of its worker inside, and no queue between them. It is what
// the queue could cost nothing against; it gives up what the queue is for.

/** Jobs that may wait. As in a worker, where WORKER_CONCURRENCY says it; here all callers of the process are jobs. */
const WAITING_MAX = 1_000;

const config = configureProcess(readApiConfig);
const service = openApiContext(config);
const burnLanes = openBurnLanes({ ...service, config: { ...config, workerConcurrency: WAITING_MAX } });
const withoutQueue = {
  isOpen: true,
  hasRoom: true,
  async ask(attemptId: string, job: RedeemJob): Promise<Answer<RedeemReply>> {
    const reply = await runRedeemJob({ ...service, burnLanes }, attemptId, job);
    return { kind: "reply", reply, queuedMs: 0, workedMs: 0 };
  },
};
const ctx = { ...service, redeemQueue: withoutQueue as unknown as ApiContext["redeemQueue"] };
const server = await listen(createApp(ctx), config.port, ctx.log);
drainOnSignal(ctx.log, async () => {
  await server.close();
  await burnLanes.drain();
  await service.close();
});
