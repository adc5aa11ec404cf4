import type { Lifetime } from "../platform/lifetime.ts";
import type { QueueResources } from "../platform/queues/open-queue.ts";
import { openWebhookRequests } from "./job.ts";
import { removeDeliveries, requestWebhooks } from "./sweep-tasks.ts";

/** What the sweeper does for webhooks. */
export const webhooks = {
  open: ({ queueLinks, closeLater }: Pick<Lifetime, "closeLater"> & { queueLinks: QueueResources }) => ({
    webhookRequests: closeLater(openWebhookRequests(queueLinks)),
  }),
  tasks: { requestWebhooks, removeDeliveries },
};
