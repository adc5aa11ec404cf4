import pLimit from "p-limit";
import { FairSlots } from "./batching/fair-slots.ts";
import type { WorkerService } from "./open-worker-service.ts";
import { WebhookRequests } from "./queues/webhook-requests.ts";
import { FAILING_MAX, REQUESTS_MAX } from "./services/webhooks/deliver.ts";
import { FanOut } from "./services/webhooks/fan-out.ts";
import { openAttemptRecorder } from "./services/webhooks/record-attempts.ts";
import { openWebhookSender } from "./services/webhooks/send-webhook.ts";

/** Connections for the fan-out and for reads of due deliveries. */
const WEBHOOK_READS = 1;

/** Opens what deliveries need. Null without WEBHOOK_SECRET. */
export function openWebhookWorker(service: WorkerService) {
  const { config, redis, deployment, log } = service;
  const { secret, allowPrivate } = config.webhooks;
  if (secret === null) return null;
  const webhookReads = pLimit(WEBHOOK_READS);
  const webhookRequests = service.closeLater(new WebhookRequests(redis, config.queueShards[0], deployment, log));
  const webhookSender = service.closeLater(openWebhookSender({ allowPrivate }));
  const fanOut = new FanOut({ ...service, webhookRequests, webhookReads });
  service.announcements.listener = () => fanOut.nudge();
  return {
    ...service,
    secret,
    webhookReads,
    webhookRequests,
    webhookSender,
    attempts: service.drainLater(openAttemptRecorder(service)),
    requests: new FairSlots(REQUESTS_MAX),
    failing: new FairSlots(FAILING_MAX),
    fanOut,
  };
}
