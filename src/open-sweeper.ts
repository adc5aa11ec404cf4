import type { WorkerService } from "./open-worker-service.ts";
import { SealRequests } from "./queues/seal-requests.ts";
import { WebhookRequests } from "./queues/webhook-requests.ts";

/** Opens what the sweeper needs. */
export function openSweeper(service: WorkerService) {
  const { redis, config, deployment, log } = service;
  const [shards] = config.queueShards;
  return {
    ...service,
    sealRequests: service.closeLater(new SealRequests(redis, shards, deployment, log)),
    webhookRequests: service.closeLater(new WebhookRequests(redis, shards, deployment, log)),
  };
}
