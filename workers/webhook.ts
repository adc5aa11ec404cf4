import { openWebhookWorker } from "../src/open-webhook-worker.ts";
import { type WorkerService, workerOptions } from "../src/open-worker-service.ts";
import { webhookQueue } from "../src/queues/catalog.ts";
import { type RunningWorker, startWorker } from "../src/queues/worker.ts";
import { deliverToEndpoint } from "../src/services/webhooks/deliver.ts";

/** Endpoints that one process serves at the same time. Waiting for an answer costs little; requests have their own limit. */
const ENDPOINTS_MAX = 256;

/**
 * Trigger: a job per endpoint with due deliveries, added by the fan-out, the sweeper or a replay. The fan-out runs in this process too:
 * it reads the outbox every second and after commits of this process. Without WEBHOOK_SECRET, this process takes no jobs of this queue.
 * Effect: due deliveries are sent and their results recorded, in the order of each voucher's events.
 * Second delivery: requests may be sent twice with the same id. The first result that is recorded counts.
 * After a crash: what was sent and not recorded is sent again, with the same id. Another worker takes over the job, or the sweeper adds one.
 */
export function prepare(service: WorkerService) {
  const ctx = openWebhookWorker(service);
  return ctx && { ctx, start: () => start(ctx) };
}

function start(ctx: NonNullable<ReturnType<typeof openWebhookWorker>>): RunningWorker {
  ctx.fanOut.start();
  const worker = startWorker(webhookQueue, workerOptions(ctx, ENDPOINTS_MAX), (_jobId, { endpointId }) =>
    deliverToEndpoint(ctx, endpointId),
  );
  return {
    async close() {
      ctx.webhookSender.stop();
      await Promise.all([ctx.fanOut.close(), worker.close()]);
    },
  };
}
