import { hostname } from "node:os";
import { type Job, UnrecoverableError, Worker } from "bullmq";
import pLimit from "p-limit";
import pTimeout from "p-timeout";
import type { Logger } from "pino";
import type { DeploymentIdentity } from "../deployment-identity.ts";
import type { Closable } from "../lifetime.ts";
import { openPatient, type RedisClient } from "../redis/connections.ts";
import { logErrors } from "../redis/log-errors.ts";
import { type JobEnd, jobEnvelope, UNREADABLE_JOB } from "./job-envelope.ts";
import { JobForgetter } from "./job-forgetter.ts";
import type { QueueDefinition } from "./queue-settings.ts";
import { listServedShards, type Shard } from "./shards.ts";

/** A running worker. `close` stops fetching jobs and waits for running jobs. */
export interface RunningWorker extends Closable {
  /** Whether the worker's jobs succeed. Absent if unknown. */
  isReady?(): boolean;
}

export interface WorkerOptions {
  redisUrl: string;
  /** The numbers of shards that the queues may have. During a change of the number there are two. */
  queueShards: readonly number[];
  /** The indexes of the shards to serve. Null means all. */
  workerShards: readonly number[] | null;
  /** Its `ready()` must have resolved. */
  deployment: DeploymentIdentity;
  /** Opens a connection to Postgres, to detect a restart of the server, which changes the origin of jobs. */
  reconnect: () => Promise<unknown>;
  /** Maximum number of running jobs. */
  concurrency: number;
  log: Logger;
  /** Called for each job from another deployment or database. */
  onForeignJob: () => void;
  /** Called for each job that has ended. `waitedMs` is null if this was not the first run of the job. */
  onJob?: (queue: string, waitedMs: number | null, workedMs: number) => void;
  /** Called at the start for each shard that the worker serves. */
  onShard?: (queue: string, shard: string, fetchers: number) => void;
}

/** Maximum wait for a channel's Redis node. Otherwise one lost node would stop jobs of all nodes. Milliseconds. */
const SEND_MAX_MS = 250;

/**
 * Maximum number of times that a job runs again after its worker was lost or frozen. If many processes end, a job can
 * lose two workers. A second run is harmless, because of the job's deadline or its rows in Postgres. The limit ends a
 * job that crashes every worker.
 */
const STALLED_MAX = 3;

/**
 * Maximum number of fetchers of a queue in a process. A queue with more shards has one fetcher per shard. A fetcher
 * takes one job per round trip.
 */
const FETCHERS_MAX = 8;

/**
 * Starts working on a queue, with at most `concurrency` running jobs. `process` gets each job's id, its validated data
 * and its trace context, and returns the job's reply. If it throws, the job fails. The worker sends the reply before
 * BullMQ records the result, so that the caller waits less. A job may be delivered twice, even while it still runs in
 * another worker.
 */
export function startWorker<Data, Reply extends object>(
  definition: QueueDefinition<Data, Reply>,
  options: WorkerOptions,
  process: (jobId: string, data: Data, traceparent: string | undefined) => Promise<Reply>,
): RunningWorker {
  const log = options.log.child({ queue: definition.name });
  const redis = openPatient(options.redisUrl, `${definition.name}-worker`, options.log);
  const forgetter = definition.isPersonal ? new JobForgetter(definition.shown.data, redis, log) : null;
  const work = workOn(definition, options, new ReplyOutbox(redis, log), process);
  const shards = listServedShards(definition, options.deployment.id, options);
  // Limits the running jobs, because the fetchers of several shards together may fetch more jobs than may run.
  const limit = pLimit(options.concurrency);
  const limited = shards.length > 1 ? (job: Job) => limit(work, job) : work;
  const fetchersPerShard = Math.max(1, Math.floor(FETCHERS_MAX / Math.max(1, shards.length)));
  const shares = splitEvenly(jobsOfShard(options.concurrency, shards.length), fetchersPerShard);
  const fetchers = shards.flatMap((shard) =>
    shares.map((concurrency) => startFetcher(definition.name, shard, concurrency, limited, { redis, log, forgetter })),
  );
  for (const { name } of shards) options.onShard?.(definition.name, name, shares.length);
  return {
    async close() {
      await Promise.all(fetchers.map((worker) => worker.close()));
      await forgetter?.close();
      redis.disconnect();
    },
  };
}

/** Runs the jobs of a queue. Refuses jobs of other deployments, and sends the result of each job to its caller. */
function workOn<Data, Reply extends object>(
  definition: QueueDefinition<Data, Reply>,
  options: WorkerOptions,
  outbox: ReplyOutbox,
  process: (jobId: string, data: Data, traceparent: string | undefined) => Promise<Reply>,
): (job: Job) => Promise<Reply> {
  const { deployment } = options;
  let reconnecting: Promise<unknown> | null = null;
  const isForeign = async (origin: string): Promise<boolean> => {
    if (origin === deployment.serverId) return false;
    reconnecting ??= options
      .reconnect()
      .catch(() => undefined)
      .finally(() => {
        reconnecting = null;
      });
    await reconnecting;
    return origin !== deployment.serverId;
  };
  return async (job) => {
    const jobId = job.id;
    const parsed = definition.data.safeParse(job.data);
    const envelope = jobEnvelope.safeParse(job.data);
    const unreadable = () => new UnrecoverableError(UNREADABLE_JOB);
    if (!envelope.success || jobId === undefined) throw unreadable();
    const { origin, replyTo, traceparent } = envelope.data;
    const startedAt = Date.now();
    const sendOutcome = async (outcome: JobEnd["outcome"]) => {
      if (replyTo === undefined) return;
      await outbox.send(replyTo, {
        jobId,
        outcome,
        queuedMs: startedAt - job.timestamp,
        workedMs: Date.now() - startedAt,
      });
    };
    try {
      if (!parsed.success) throw unreadable();
      if (await isForeign(origin)) {
        options.onForeignJob();
        throw new UnrecoverableError("the job is from another deployment or database");
      }
      const reply = { ...(await process(jobId, parsed.data, traceparent)), origin };
      await sendOutcome({ reply });
      return reply;
    } catch (error) {
      await sendOutcome({ failure: (error as Error).message });
      throw error;
    } finally {
      const waitedMs = job.attemptsStarted > 1 ? null : startedAt - job.timestamp;
      options.onJob?.(definition.name, waitedMs, Date.now() - startedAt);
    }
  };
}

function startFetcher<Reply>(
  queue: string,
  { prefix }: Shard,
  concurrency: number,
  work: (job: Job) => Promise<Reply>,
  { redis, log, forgetter }: { redis: RedisClient; log: Logger; forgetter: JobForgetter | null },
): Worker {
  const forgetting = (job: Job) => work(job).finally(() => forgetter?.add(job));
  const worker = new Worker(queue, forgetter === null ? work : forgetting, {
    prefix,
    connection: redis,
    name: hostname(),
    concurrency,
    // BullMQ renews the lock of a running job. The lock lasts long, so that a short pause of the process does not lose
    // it. Another worker takes over the jobs of a lost worker within 20 s.
    lockDuration: 15_000,
    stalledInterval: 5_000,
    maxStalledCount: STALLED_MAX,
    drainDelay: 5,
    runRetryDelay: 1_000,
  });
  logErrors(worker, log, "an error of a worker");
  worker.on("failed", (job, error) => {
    log.error({ err: error, jobId: job?.id }, "a job failed");
    // If a job's workers were lost too often, BullMQ fails the job without calling `work`.
    if (job !== undefined) forgetter?.add(job);
  });
  worker.on("stalled", (jobId) => log.warn({ jobId }, "a job's worker died; the job runs again"));
  return worker;
}

/**
 * How many jobs of one shard may be fetched at once. Some fetched jobs must wait, so with several shards, a shard gets
 * a quarter of `concurrency` in addition to its part.
 */
function jobsOfShard(concurrency: number, shards: number): number {
  if (shards <= 1) return concurrency;
  return Math.min(concurrency, Math.ceil(concurrency / shards) + Math.ceil(concurrency / 4));
}

/** Splits `total` into at most `shares` whole parts, which differ by at most one. */
function splitEvenly(total: number, shares: number): number[] {
  const count = Math.min(total, shares);
  return Array.from({ length: count }, (_, index) => Math.floor((total + index) / count));
}

interface Message {
  ends: JobEnd[];
  sent: Promise<void>;
}

/**
 * Sends results to the processes that wait for them. The results of one turn of the event loop, such as those of one
 * batch, share one message per process.
 */
class ReplyOutbox {
  readonly #redis: RedisClient;
  readonly #log: Logger;
  /** Unpublished messages by channel. Results of the same turn of the event loop are added to them. */
  readonly #unsent = new Map<string, Message>();

  /** @param redis a connection that waits for Redis. The caller closes it. */
  constructor(redis: RedisClient, log: Logger) {
    this.#redis = redis;
    this.#log = log;
  }

  /**
   * Resolves when the message is published or its failure is logged, at the latest after {@link SEND_MAX_MS}. Await
   * this before the next command on the connection, because Redis delivers a message only after running all commands
   * that have arrived.
   */
  send(channel: string, end: JobEnd): Promise<void> {
    const message = this.#unsent.get(channel);
    if (message !== undefined) {
      message.ends.push(end);
      return message.sent;
    }
    const ends = [end];
    const sent = this.#publish(channel, ends);
    this.#unsent.set(channel, { ends, sent });
    return sent;
  }

  async #publish(channel: string, ends: JobEnd[]): Promise<void> {
    // Waits until all pending promise callbacks have run, such as those of the batch, but not for further input.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    this.#unsent.delete(channel);
    try {
      await pTimeout(this.#redis.spublish(channel, JSON.stringify(ends)), { milliseconds: SEND_MAX_MS });
    } catch (error) {
      this.#log.warn({ err: error }, "replies could not be sent");
    }
  }
}
