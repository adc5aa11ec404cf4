import type { Wing } from "../wing.ts";
import { TLOG_METRICS, TLOG_QUEUE, tlogVariables } from "./declared.ts";

/** The transparency log: a Merkle tree of all sealed events. Witnesses cosign its checkpoints. */
export const transparency = {
  variables: tlogVariables,
  queues: [TLOG_QUEUE],
  grants: new URL("./grants.sql", import.meta.url),
  metrics: TLOG_METRICS,
  api: async () => (await import("./in-api.ts")).api,
  workers: { log: () => import("./worker.ts") },
  commands: async () => (await import("./in-voucherctl.ts")).commands,
  start: async () => (await import("./in-start.ts")).start,
} satisfies Wing;
