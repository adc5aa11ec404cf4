import type { WorkerService } from "./open-worker-service.ts";
import { openRedeemCommitter } from "./services/partner/redeem-committer.ts";

/** Opens what redeem jobs need. */
export function openRedeemWorker(service: WorkerService) {
  return { ...service, redeemCommitter: service.drainLater(openRedeemCommitter(service)) };
}
