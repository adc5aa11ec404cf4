import { defineQueue } from "../../platform/queues/definition.ts";
import { redeemJob, redeemReply, sealJob, sealReply, sweepJob, sweepReport } from "./jobs.ts";
import { logJob, logReport } from "./log-jobs.ts";
import { webhookJob, webhookReport } from "./webhook-jobs.ts";

export const redeemQueue = defineQueue({
  name: "redeem",
  data: redeemJob,
  reply: redeemReply,
  shardBy: "voucherId",
  ownedBy: "organizationId",
  dataMaxBytes: 8_192,
  // A caller waits ten seconds. In that time, two workers redeem 10 000 jobs at 1 000 jobs/s in total.
  waitingMax: 10_000,
  // After the timeout the job's deadline has passed, so a worker would only refuse the job.
  withdrawOnTimeout: true,
  // 225 MB at 5 000 jobs/s. There is no `count`: it would raise the cost of a job in Redis by a tenth.
  keep: { age: 30 },
  keepFailed: { age: 86_400, count: 5_000 },
  shown: { data: ["voucherId", "organizationId", "keyId", "deadlineMs"], reply: ["kind", "code", "redeemedAtMs"] },
});

export const sealQueue = defineQueue({
  name: "seal",
  data: sealJob,
  reply: sealReply,
  shardBy: "voucherId",
  dataMaxBytes: 1_024,
  waitingMax: 10_000,
  // A late seal is still needed.
  withdrawOnTimeout: false,
  keep: { age: 30 },
  keepFailed: { age: 86_400, count: 5_000 },
  shown: { data: ["voucherId"], reply: ["sealed"] },
});

export const sweepQueue = defineQueue({
  name: "sweep",
  data: sweepJob,
  reply: sweepReport,
  dataMaxBytes: 64,
  waitingMax: 1,
  withdrawOnTimeout: false,
  keep: { age: 3_600, count: 1_000 },
  keepFailed: { age: 86_400, count: 1_000 },
  shown: { data: [], reply: sweepReport.keyof().options },
});

export const logQueue = defineQueue({
  name: "log",
  // Its workers need the log's key.
  isOptional: true,
  data: logJob,
  reply: logReport,
  dataMaxBytes: 64,
  waitingMax: 1,
  withdrawOnTimeout: false,
  // A pass runs every second.
  keep: { age: 3_600, count: 1_000 },
  keepFailed: { age: 86_400, count: 1_000 },
  shown: { data: [], reply: logReport.keyof().options },
});

export const webhookQueue = defineQueue({
  name: "webhook",
  // Its workers need WEBHOOK_SECRET.
  isOptional: true,
  data: webhookJob,
  reply: webhookReport,
  dataMaxBytes: 256,
  // An endpoint has at most one waiting job.
  waitingMax: 10_000,
  withdrawOnTimeout: false,
  keep: { age: 30, count: 1_000 },
  keepFailed: { age: 86_400, count: 1_000 },
  shown: { data: ["endpointId"], reply: webhookReport.keyof().options },
});

/** All queues. WORKER_QUEUES, the metrics and the dashboard derive from this list. A new queue also needs a worker in `workers/`. */
export const QUEUES = [redeemQueue, sealQueue, sweepQueue, logQueue, webhookQueue] as const;
