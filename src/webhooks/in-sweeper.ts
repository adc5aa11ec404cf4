import type { Lifetime } from "../platform/lifetime.ts";
import type { QueueResources } from "../platform/queues/open-queue.ts";
import { openWebhookRequests } from "./job.ts";
import { removeDeliveries, requestWebhooks } from "./sweep-tasks.ts";

/** What webhooks add to the sweeper. */
export const webhooks = {
  open: ({ queueLinks, use }: Pick<Lifetime, "use"> & { queueLinks: QueueResources }) => ({
    webhookRequests: use(openWebhookRequests(queueLinks)),
  }),
  tasks: { requestWebhooks, removeDeliveries },
};
