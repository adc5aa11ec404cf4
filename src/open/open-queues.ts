import { sealQueue } from "../core/chain/seal-job.ts";
import { Canary } from "../core/redeem/canary.ts";
import { redeemQueue } from "../core/redeem/job.ts";
import { AwaitedQueue } from "../platform/queues/awaited-queue.ts";
import { QueueViews } from "../platform/queues/queue-views.ts";
import { ReplyInbox } from "../platform/queues/reply-inbox.ts";
import type { ServiceContext } from "./open-service.ts";

/** Opens the queues whose replies API calls await, and the views of all queues. */
export function openQueues(service: ServiceContext, onForeignReply: () => void) {
  const { config, redis, deployment, log, use, endRuns } = service;
  const inbox = use(new ReplyInbox(config.redisUrl, log));
  const queueLinks = { redis, inbox, shards: config.queueShards[0], deployment, log, endRuns, onForeignReply };
  const redeeming = use(new AwaitedQueue(redeemQueue, queueLinks));
  return {
    queueLinks,
    redeemQueue: redeeming,
    canary: use(new Canary({ config, redeemQueue: redeeming, process: service.process })),
    sealQueue: use(new AwaitedQueue(sealQueue, queueLinks)),
    queueViews: use(new QueueViews(config, deployment, log)),
  };
}
