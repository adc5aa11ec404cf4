import type { z } from "zod";

type FieldOf<Value> = Value extends unknown ? keyof Value & string : never;

/** The limits of a queue. {@link defineQueue} adds the schemas of its jobs. */
export interface QueueSettings {
  name: string;
  dataMaxBytes: number;
  /** The field of a job that selects its shard. Without such a field, all jobs are in the first shard. */
  shardBy?: string;
  /** The field of a job that names its owner. One owner cannot use up the numbers of callers and jobs that may wait. */
  ownedBy?: string;
  /** The variable without which the queue has no workers. */
  needs?: string;
  /** What happens while the queue is paused, as a sentence. */
  whilePaused: string;
  /** Maximum number of jobs that wait for a worker, divided among the shards by {@link waitingMaxOfShard}. */
  waitingMax: number;
  /** Whether a caller that stops waiting removes its job if no worker has started it. */
  withdrawOnTimeout: boolean;
  /** For how long (seconds) and how many finished jobs are kept, for operators and for callers whose reply was lost. */
  keep: { age: number; count?: number };
  keepFailed: { age: number; count: number };
  /** Set if jobs may identify a person. A job then loses all but what operators see, about a second after its end. */
  isPersonal?: true;
  /** Fields that operators see. Others are redacted, because they may contain a caller's text or a secret. */
  shown: { data: readonly string[]; reply: readonly string[] | "all" };
  /** The field with the id of the entity that a job concerns, and the operator page of that entity. */
  about?: { field: string; collection: string; label: string };
}

/** Minimum of a shard's part of `waitingMax`, so that a burst of calls fits into one of many shards. */
const SHARD_WAITING_MIN = 500;

/** Maximum number of jobs that wait for a worker in one shard of a queue. Further jobs are refused at once. */
export function waitingMaxOfShard({ waitingMax }: Pick<QueueSettings, "waitingMax">, shards: number): number {
  return Math.min(waitingMax, Math.max(SHARD_WAITING_MIN, Math.ceil(waitingMax / shards)));
}

/** A queue, its limits and the schemas of its jobs. */
export interface QueueDefinition<Data = unknown, Reply = unknown> extends QueueSettings {
  /** Validates a job's data. The job may come from an older release or from the dashboard. */
  data: z.ZodType<Data>;
  reply: z.ZodType<Reply>;
}

/** The fields of a job that a queue's settings mention. */
type NamedBy<Own> =
  | (Own extends { shardBy: infer Field } ? Field : never)
  | (Own extends { ownedBy: infer Field } ? Field : never);

/** Adds the schemas of a queue's jobs to its limits. The jobs must have the fields that the limits mention. */
export function defineQueue<Own extends QueueSettings, Data, Reply>(
  settings: Own,
  schemas: NamedBy<Own> extends FieldOf<Data> ? { data: z.ZodType<Data>; reply: z.ZodType<Reply> } : never,
): QueueDefinition<Data, Reply> {
  return { ...settings, ...schemas };
}
