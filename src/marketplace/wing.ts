import type { Wing } from "../wing.ts";
import { MARKETPLACE_METRICS } from "./declared.ts";

/** The marketplace: users claim and buy vouchers of open batches, through listings, products and referral links. */
export const marketplace = {
  grants: new URL("./grants.sql", import.meta.url),
  metrics: MARKETPLACE_METRICS,
  api: async () => (await import("./in-api.ts")).api,
  sweeper: async () => (await import("./sweep-tasks.ts")).openSweepTasks,
  acts: async () => (await import("./acts.ts")).ACTS,
  commands: async () => (await import("./in-voucherctl.ts")).commands,
  demo: async () => (await import("./in-demo.ts")).demo,
} satisfies Wing;
