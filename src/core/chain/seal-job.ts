import { z } from "zod";
import { JobRequests } from "../../platform/queues/job-requests.ts";
import type { QueueResources } from "../../platform/queues/open-queue.ts";
import { defineQueue } from "../../platform/queues/queue-settings.ts";
import { CORE_QUEUES } from "../queues.ts";

/** A request to seal the Pending events of one voucher. */
const sealJob = z.object({ voucherId: z.string() });
export type SealJob = z.output<typeof sealJob>;

/** The number of events that the job has sealed. 0 if they were already sealed. */
const sealReply = z.object({ sealed: z.number() });
export type SealReply = z.output<typeof sealReply>;

export const sealQueue = defineQueue(CORE_QUEUES.seal, { data: sealJob, reply: sealReply });

/** Requests seal jobs. If a requested job for the voucher already waits or runs, adds no second one. */
export function openSealRequests(resources: QueueResources) {
  return new JobRequests<SealJob>(sealQueue, resources, (voucherId) => ({
    data: { voucherId },
    opts: { jobId: `${voucherId}-${crypto.randomUUID()}`, deduplication: { id: voucherId } },
  }));
}

export type SealRequests = ReturnType<typeof openSealRequests>;
