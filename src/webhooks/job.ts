import { z } from "zod";
import { JobRequests } from "../platform/queues/job-requests.ts";
import type { QueueResources } from "../platform/queues/open-queue.ts";
import { defineQueue } from "../platform/queues/queue-settings.ts";
import { WEBHOOK_QUEUE } from "./declared.ts";

/** A request to send the due deliveries of one endpoint. The worker reads them from Postgres. */
const webhookJob = z.object({ endpointId: z.string() });

/** The results of one job. */
const webhookReport = z.object({
  delivered: z.number(),
  /** Number of failed attempts that will be repeated. */
  retried: z.number(),
  /** Number of deliveries that failed and will not be retried. */
  failed: z.number(),
});
export type WebhookReport = z.output<typeof webhookReport>;

export const webhookQueue = defineQueue(WEBHOOK_QUEUE, { data: webhookJob, reply: webhookReport });

/** Opens the requests for webhook jobs. An endpoint has at most one running job and at most one that follows. */
export function openWebhookRequests(resources: QueueResources) {
  return new JobRequests<{ endpointId: string }>(webhookQueue, resources, (endpointId) => ({
    data: { endpointId },
    opts: { deduplication: { id: endpointId, keepLastIfActive: true } },
  }));
}

export type WebhookRequests = ReturnType<typeof openWebhookRequests>;
