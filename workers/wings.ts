/** The workers of the wings' queues. */
export const WING_WORKERS = {
  log: () => import("./log.ts"),
  webhook: () => import("./webhook.ts"),
};
