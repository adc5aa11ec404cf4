import type { WorkerService } from "./open-worker-service.ts";
import { openSealCommitter } from "./services/chain/seal-committer.ts";

/** Opens what seal jobs need. */
export function openSealWorker(service: WorkerService) {
  return { ...service, sealCommitter: service.drainLater(openSealCommitter(service)) };
}
