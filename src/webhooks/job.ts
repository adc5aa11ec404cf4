import { z } from "zod";
import { JobRequests } from "../platform/queues/job-requests.ts";
import type { QueueResources } from "../platform/queues/open-queue.ts";
import { defineQueue } from "../platform/queues/queue-settings.ts";

/** A request to send the due deliveries of one endpoint. The worker reads them from Postgres. */
const webhookJob = z.object({ endpointId: z.string() });

/** The results of one job. */
const webhookReport = z.object({
  delivered: z.number(),
  /** Failed attempts that are retried later. */
  retried: z.number(),
  /** Deliveries that are not retried. */
  failed: z.number(),
});
export type WebhookReport = z.output<typeof webhookReport>;

export const webhookQueue = defineQueue("webhook", { data: webhookJob, reply: webhookReport });

/**
 * Requests webhook jobs. An endpoint has at most one running job; if one is requested meanwhile, a single job follows
 * when that one ends.
 */
export function openWebhookRequests(resources: QueueResources) {
  return new JobRequests<{ endpointId: string }>(webhookQueue, resources, (endpointId) => ({
    data: { endpointId },
    opts: { deduplication: { id: endpointId, keepLastIfActive: true } },
  }));
}

export type WebhookRequests = ReturnType<typeof openWebhookRequests>;
