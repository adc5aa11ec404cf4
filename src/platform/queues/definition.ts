import type { z } from "zod";

/** The names of all queues, as WORKER_QUEUES names them. */
export const QUEUE_NAMES = ["redeem", "seal", "sweep", "log", "webhook"] as const;

export type QueueName = (typeof QUEUE_NAMES)[number];

type FieldOf<Value> = Value extends unknown ? keyof Value & string : never;

/** A queue, its schemas and its limits. */
export interface QueueDefinition<Data = unknown, Reply = unknown, Name extends string = string> {
  name: Name;
  /** Validates a job's data, because an older release or the dashboard may have added the job. */
  data: z.ZodType<Data>;
  reply: z.ZodType<Reply>;
  /** Largest job data, in bytes. */
  dataMaxBytes: number;
  /** The field that decides which shard a job belongs to. Without one, all jobs are in the first shard. */
  shardBy?: FieldOf<Data>;
  /** The field that names a job's owner. Owners share the places of the callers that wait in a process. */
  ownedBy?: FieldOf<Data>;
  /** Set if only some deployments have a worker for the queue. */
  isOptional?: true;
  /** Jobs that may wait for a worker, in all shards together. Further jobs are refused at once. */
  waitingMax: number;
  /** Whether a caller that stops waiting removes its job, if no worker has started it. */
  withdrawOnTimeout: boolean;
  /** How long (seconds) and how many finished jobs are kept, for operators and for callers whose reply was lost. */
  keep: { age: number; count?: number };
  keepFailed: { age: number; count: number };
  /** Fields that the dashboard shows. All others are redacted, because they may contain a caller's text or a secret. */
  shown: { data: readonly FieldOf<Data>[]; reply: readonly FieldOf<Reply>[] };
}

/** Declares a queue. */
export function defineQueue<Data, Reply, const Name extends QueueName>(
  definition: QueueDefinition<Data, Reply, Name>,
): QueueDefinition<Data, Reply, Name> {
  return definition;
}
