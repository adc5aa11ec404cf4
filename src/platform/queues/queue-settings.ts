import type { z } from "zod";

type FieldOf<Value> = Value extends unknown ? keyof Value & string : never;

/** The limits of a queue. The feature that it works for adds the schemas of its jobs, with {@link defineQueue}. */
export interface QueueSettings {
  name: string;
  /** Largest job data, in bytes. */
  dataMaxBytes: number;
  /** The field of a job that decides which shard it belongs to. Without one, all jobs are in the first shard. */
  shardBy?: string;
  /** The field that names a job's owner. In a process, owners share the places of callers and of jobs in the queue. */
  ownedBy?: string;
  /** Set if only some deployments have a worker for the queue. */
  isOptional?: true;
  /** Maximum number of jobs that wait for a worker, divided among the shards by {@link waitingMaxOfShard}. */
  waitingMax: number;
  /** Whether a caller that stops waiting removes its job, if no worker has started it. */
  withdrawOnTimeout: boolean;
  /** How long (seconds) and how many finished jobs are kept, for operators and for callers whose reply was lost. */
  keep: { age: number; count?: number };
  keepFailed: { age: number; count: number };
  /**
   * Set if jobs may identify a person. A job that has ended then keeps, after about a second, only the data that
   * operators see.
   */
  isPersonal?: true;
  /**
   * Fields of jobs and replies that operators see. Others are redacted: they may contain a caller's text or a secret.
   */
  shown: { data: readonly string[]; reply: readonly string[] | "all" };
}

const SETTINGS = [
  {
    name: "redeem",
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
    isPersonal: true,
    shown: { data: ["voucherId", "organizationId", "keyId", "deadlineMs"], reply: ["kind", "code", "redeemedAtMs"] },
  },
  {
    name: "seal",
    shardBy: "voucherId",
    ownedBy: "voucherId",
    dataMaxBytes: 1_024,
    waitingMax: 10_000,
    // A seal is still needed after its caller has stopped waiting.
    withdrawOnTimeout: false,
    keep: { age: 30 },
    keepFailed: { age: 86_400, count: 5_000 },
    shown: { data: ["voucherId"], reply: ["sealed"] },
  },
  {
    name: "sweep",
    dataMaxBytes: 64,
    waitingMax: 1,
    withdrawOnTimeout: false,
    keep: { age: 3_600, count: 1_000 },
    keepFailed: { age: 86_400, count: 1_000 },
    shown: { data: [], reply: "all" },
  },
  {
    name: "log",
    // Its workers need the log's key.
    isOptional: true,
    dataMaxBytes: 64,
    waitingMax: 1,
    withdrawOnTimeout: false,
    // A pass runs every second.
    keep: { age: 3_600, count: 1_000 },
    keepFailed: { age: 86_400, count: 1_000 },
    shown: { data: [], reply: "all" },
  },
  {
    name: "webhook",
    // Its workers need WEBHOOK_SECRET.
    isOptional: true,
    dataMaxBytes: 256,
    // An endpoint has at most one waiting job.
    waitingMax: 10_000,
    withdrawOnTimeout: false,
    keep: { age: 30, count: 1_000 },
    keepFailed: { age: 86_400, count: 1_000 },
    shown: { data: ["endpointId"], reply: "all" },
  },
] as const satisfies readonly QueueSettings[];

type Settings = (typeof SETTINGS)[number];
export type QueueName = Settings["name"];

/**
 * All queues. WORKER_QUEUES, the metrics and the dashboard derive from this list. A queue also needs a worker in
 * `workers/`.
 */
export const QUEUES: readonly (QueueSettings & { name: QueueName })[] = SETTINGS;

export const QUEUE_NAMES = QUEUES.map(({ name }) => name);

/** The least that a shard's share of `waitingMax` comes to: many shards have many workers, and a burst must fit. */
const SHARD_WAITING_MIN = 500;

/** Maximum number of jobs that wait for a worker in one of a queue's shards. Further jobs are refused at once. */
export function waitingMaxOfShard({ waitingMax }: Pick<QueueSettings, "waitingMax">, shards: number): number {
  return Math.min(waitingMax, Math.max(SHARD_WAITING_MIN, Math.ceil(waitingMax / shards)));
}

/** A queue, its limits and the schemas of its jobs. */
export interface QueueDefinition<Data = unknown, Reply = unknown> extends QueueSettings {
  /** Validates a job's data, because an older release or the dashboard may have added the job. */
  data: z.ZodType<Data>;
  reply: z.ZodType<Reply>;
}

/** The fields of a job that a queue's settings name. */
type NamedBy<Name> =
  Extract<Settings, { name: Name }> extends infer Own
    ? (Own extends { shardBy: infer Field } ? Field : never) | (Own extends { ownedBy: infer Field } ? Field : never)
    : never;

/** Adds the schemas of a queue's jobs to its limits. The jobs must have the fields that the limits name. */
export function defineQueue<Name extends QueueName, Data, Reply>(
  name: Name,
  schemas: NamedBy<Name> extends FieldOf<Data> ? { data: z.ZodType<Data>; reply: z.ZodType<Reply> } : never,
): QueueDefinition<Data, Reply> & { name: Name } {
  const settings = QUEUES.find((queue) => queue.name === name) as QueueSettings;
  return { ...settings, ...schemas, name };
}
