import type { Wing } from "../wing.ts";
import { WEBHOOK_METRICS, WEBHOOK_QUEUE, webhookVariables } from "./declared.ts";

/** Webhooks: sends events of an organization's vouchers to addresses that the organization has registered. */
export const webhooks = {
  variables: webhookVariables,
  queues: [WEBHOOK_QUEUE],
  grants: new URL("./grants.sql", import.meta.url),
  metrics: WEBHOOK_METRICS,
  api: async () => (await import("./in-api.ts")).api,
  workers: { webhook: () => import("./worker.ts") },
  sweeper: async () => (await import("./sweep-tasks.ts")).openSweepTasks,
  acts: async () => (await import("./acts.ts")).ACTS,
  commands: async () => (await import("./in-voucherctl.ts")).commands,
} satisfies Wing;
