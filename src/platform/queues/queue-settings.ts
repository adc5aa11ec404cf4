import type { z } from "zod";

type FieldOf<Value> = Value extends unknown ? keyof Value & string : never;

/** The limits of a queue. The feature that it works for adds the schemas of its jobs, with {@link defineQueue}. */
export interface QueueSettings {
  name: string;
  /** Largest job data, in bytes. */
  dataMaxBytes: number;
  /**
   * The field of a job that decides which shard it belongs to. Without such a field, all jobs are in the first shard.
   */
  shardBy?: string;
  /**
   * The field that names a job's owner. In a process, owners share the numbers of callers and of jobs that may wait.
   */
  ownedBy?: string;
  /** The variable that its workers need. Only a deployment with a value of it has workers for the queue. */
  needs?: string;
  /** What happens while it is paused, as a sentence. */
  whilePaused: string;
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
  /** The field of a job that names what the job is about, and the operator page of it. */
  about?: { field: string; collection: string; label: string };
}

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
type NamedBy<Own> =
  | (Own extends { shardBy: infer Field } ? Field : never)
  | (Own extends { ownedBy: infer Field } ? Field : never);

/** Adds the schemas of a queue's jobs to its limits. The jobs must have the fields that the limits name. */
export function defineQueue<Own extends QueueSettings, Data, Reply>(
  settings: Own,
  schemas: NamedBy<Own> extends FieldOf<Data> ? { data: z.ZodType<Data>; reply: z.ZodType<Reply> } : never,
): QueueDefinition<Data, Reply> {
  return { ...settings, ...schemas };
}
