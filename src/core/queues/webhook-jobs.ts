import { z } from "zod";

/** A request to send the due deliveries of one endpoint. The worker reads them from Postgres. */
export const webhookJob = z.object({ endpointId: z.string() });

/** The results of one job. */
export const webhookReport = z.object({
  delivered: z.number(),
  /** Failed attempts that are retried later. */
  retried: z.number(),
  /** Deliveries that are not retried. */
  failed: z.number(),
});
export type WebhookReport = z.output<typeof webhookReport>;
