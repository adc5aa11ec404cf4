import type pg from "pg";
import { inTransaction } from "../platform/db/transaction.ts";
import type { Lifetime } from "../platform/lifetime.ts";
import type { QueueResources } from "../platform/queues/open-queue.ts";
import { DELIVERIES_KEPT_DAYS } from "./api/webhook-deliveries.ts";
import {
  deleteDeletedEndpoints,
  deleteOldDeliveries,
  endPendingDeliveries,
  selectTargetsWithDue,
} from "./db/webhook-deliveries.ts";
import { openWebhookRequests, type WebhookRequests } from "./job.ts";

/** Maximum number of targets that get a webhook job in one pass. */
const REQUESTED_TARGETS_MAX = 10_000;
/** Number of deliveries that one transaction ends or deletes. A transaction takes some 20 ms. */
const PORTION = 1_000;

interface Deps {
  pool: pg.Pool;
  webhookRequests: WebhookRequests;
}

/** Opens what webhooks add to the sweeper. */
export function openSweepTasks(
  service: Omit<Deps, "webhookRequests"> & Pick<Lifetime, "use"> & { queueLinks: QueueResources },
) {
  const ctx = { ...service, webhookRequests: service.use(openWebhookRequests(service.queueLinks)) };
  return {
    requestWebhooks: () => requestWebhooks(ctx),
    removeDeliveries: (_: unknown, untilMs: number) => removeDeliveries(ctx, untilMs),
  };
}

/**
 * Adds a webhook job for each target with due deliveries, for example retries, or deliveries whose job was lost.
 * Returns the number of targets.
 */
export async function requestWebhooks({ pool, webhookRequests }: Deps): Promise<number> {
  const endpointIds = await selectTargetsWithDue(pool, { limit: REQUESTED_TARGETS_MAX });
  await webhookRequests.add(endpointIds);
  return endpointIds.length;
}

/**
 * Ends Pending deliveries of disabled targets, and deletes old deliveries and deleted targets. Returns how many
 * deliveries it has ended and deleted.
 */
export async function removeDeliveries({ pool }: { pool: pg.Pool }, untilMs: number): Promise<number> {
  let count = 0;
  for (const step of [
    () => inTransaction(pool, (tx) => endPendingDeliveries(tx, PORTION)),
    () => deleteOldDeliveries(pool, { days: DELIVERIES_KEPT_DAYS, limit: PORTION }),
  ]) {
    let changed: number;
    do {
      changed = await step();
      count += changed;
    } while (changed > 0 && performance.now() < untilMs);
  }
  await deleteDeletedEndpoints(pool);
  return count;
}
