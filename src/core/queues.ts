import type { QueueSettings } from "../platform/queues/queue-settings.ts";

/** The queues of the core, and their limits. */
export const CORE_QUEUES = {
  redeem: {
    name: "redeem",
    shardBy: "voucherId",
    ownedBy: "organizationId",
    dataMaxBytes: 8_192,
    // A caller waits ten seconds. In that time, workers at 1 000 jobs/s in total redeem 10 000 jobs.
    waitingMax: 10_000,
    // A job whose caller has stopped waiting is past its deadline, so a worker would only refuse it.
    withdrawOnTimeout: true,
    // At 5 000 jobs/s, the kept jobs take 225 MB. A `count` would raise the cost of each job in Redis by a tenth.
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
    // The event must be sealed even if the caller has stopped waiting.
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
