import type pg from "pg";
import { selectEndpointsWithDue } from "../../db/webhook-deliveries.ts";
import type { WebhookRequests } from "../../queues/webhook-requests.ts";

/** Endpoints checked in one pass. */
const ENDPOINTS_MAX = 10_000;

/** Adds a webhook job for each endpoint with something due, and returns their number: a retry is due, or a job was lost. */
export async function requestWebhooks(ctx: { pool: pg.Pool; webhookRequests: WebhookRequests }): Promise<number> {
  const endpointIds = await selectEndpointsWithDue(ctx.pool, ENDPOINTS_MAX);
  await ctx.webhookRequests.add(endpointIds);
  return endpointIds.length;
}
