import { z } from "zod";
import { orNull, secret, wingVariables } from "../platform/environment.ts";
import type { QueueSettings } from "../platform/queues/queue-settings.ts";

export const webhookVariables = wingVariables("webhooks", {
  /** The secret that the endpoints' secrets derive from. Null: this deployment has no webhooks. */
  secret: orNull(z.string().min(32, "must be at least 32 characters long")).meta(secret("WEBHOOK_SECRET")),
});

export const WEBHOOK_QUEUE = {
  name: "webhook",
  needs: "WEBHOOK_SECRET",
  dataMaxBytes: 256,
  // An endpoint has at most one waiting job.
  waitingMax: 10_000,
  withdrawOnTimeout: false,
  keep: { age: 30, count: 1_000 },
  keepFailed: { age: 86_400, count: 1_000 },
  shown: { data: ["endpointId"], reply: "all" },
  about: { field: "endpointId", collection: "webhooks", label: "Endpoint" },
  whilePaused: "While it is paused, webhooks wait.",
} as const satisfies QueueSettings;
