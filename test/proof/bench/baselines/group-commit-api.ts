import type { RedeemJob, RedeemReply } from "../../../../src/core/redeem/job.ts";
import { openRedeemCommitter, runRedeemJob } from "../../../../src/core/redeem/redeem-committer.ts";
import { createApp } from "../../../../src/open/app.ts";
import { CONFIG_PARTS } from "../../../../src/open/config-parts.ts";
import { type ApiContext, openApi } from "../../../../src/open/open-api.ts";
import { readApiConfig } from "../../../../src/platform/config.ts";
import { listen } from "../../../../src/platform/http/server.ts";
import { closeOnSignal, configureProcess } from "../../../../src/platform/process.ts";
import type { WaitResult } from "../../../../src/platform/queues/awaited-queue.ts";

// Baseline (d): the service's API with the worker's group committer in the same process. A comparison with the service
// shows the queue's cost. This baseline lacks the queue's benefits.

/** Maximum number of waiting redeems in the process. In a worker, WORKER_CONCURRENCY is the limit. */
const WAITING_MAX = 1_000;

const config = configureProcess((env) => readApiConfig(env, CONFIG_PARTS));
const service = openApi(config);
const redeemCommitter = service.use(
  openRedeemCommitter({
    ...service,
    onAnnounced: () => undefined,
    config: { ...config, workerConcurrency: WAITING_MAX },
  }),
);
const withoutQueue: Pick<ApiContext["redeemQueue"], "hasOpened" | "askForPlace" | "addAndWait"> = {
  hasOpened: true,
  askForPlace: () => true,
  async addAndWait(attemptId: string, job: RedeemJob): Promise<WaitResult<RedeemReply>> {
    const reply = await runRedeemJob({ ...service, redeemCommitter }, attemptId, job);
    return { kind: "reply", reply, queuedMs: 0, workedMs: 0 };
  },
};
const ctx = { ...service, redeemQueue: withoutQueue as ApiContext["redeemQueue"] };
ctx.use(await listen(createApp(ctx), config, ctx.log));
closeOnSignal(ctx.log, ctx);
