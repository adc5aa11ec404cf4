import type pg from "pg";
import { selectEndpointsWithDue } from "../../db/webhook-deliveries.ts";
import type { WebhookRequests } from "../../queues/webhook-requests.ts";

/** Most endpoints that get a job in one pass. */
const ENDPOINTS_MAX = 10_000;

/** Adds a webhook job for each endpoint with due deliveries, such as retries or deliveries whose job was lost. Returns the number of endpoints. */
export async function requestWebhooks(ctx: { pool: pg.Pool; webhookRequests: WebhookRequests }): Promise<number> {
  const endpointIds = await selectEndpointsWithDue(ctx.pool, ENDPOINTS_MAX);
  await ctx.webhookRequests.add(endpointIds);
  return endpointIds.length;
}
