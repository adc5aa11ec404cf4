import type { QueueSettings } from "../platform/queues/queue-settings.ts";

/** The queues of the core, and their limits. */
export const CORE_QUEUES = {
  redeem: {
    name: "redeem",
    shardBy: "voucherId",
    ownedBy: "organizationId",
    dataMaxBytes: 8_192,
    // A caller waits ten seconds. In that time, two workers redeem 10 000 jobs, at 1 000 jobs/s in total.
    waitingMax: 10_000,
    // After the timeout, the job's deadline has passed and a worker would only refuse the job.
    withdrawOnTimeout: true,
    // 225 MB at 5 000 jobs/s. There is no `count`, because it would raise the cost of a job in Redis by a tenth.
    keep: { age: 30 },
    keepFailed: { age: 86_400, count: 5_000 },
    isPersonal: true,
    shown: { data: ["voucherId", "organizationId", "keyId", "deadlineMs"], reply: ["kind", "code", "redeemedAtMs"] },
    about: { field: "voucherId", collection: "vouchers", label: "Voucher" },
    whilePaused: "While it is paused, every redeem is answered with 503. Jobs that run now end.",
  },
  seal: {
    name: "seal",
    shardBy: "voucherId",
    ownedBy: "voucherId",
    dataMaxBytes: 1_024,
    waitingMax: 10_000,
    // A seal is needed even after its caller has stopped waiting.
    withdrawOnTimeout: false,
    keep: { age: 30 },
    keepFailed: { age: 86_400, count: 5_000 },
    shown: { data: ["voucherId"], reply: ["sealed"] },
    about: { field: "voucherId", collection: "vouchers", label: "Voucher" },
    whilePaused: "While it is paused, claims and purchases are sealed later. Redemptions go on.",
  },
  sweep: {
    name: "sweep",
    dataMaxBytes: 64,
    waitingMax: 1,
    withdrawOnTimeout: false,
    keep: { age: 3_600, count: 1_000 },
    keepFailed: { age: 86_400, count: 1_000 },
    shown: { data: [], reply: "all" },
    whilePaused: "While it is paused, nothing is repaired or counted, and the ends of reservations are recorded later.",
  },
} as const satisfies Record<string, QueueSettings>;
