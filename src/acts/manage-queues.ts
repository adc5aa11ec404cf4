import { AppError } from "../platform/api/errors.ts";
import type { QueueName } from "../platform/queues/queue-settings.ts";
import type { QueueView, QueueViews } from "../platform/queues/queue-views.ts";
import { isRedisUnavailable } from "../platform/redis/connections.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

type Queue = QueueView["queue"];
type Job = NonNullable<Awaited<ReturnType<Queue["getJob"]>>>;

/** What an act on a queue needs. */
export interface QueueActs extends Pick<AuditContext, "pool" | "audited"> {
  queueViews: Pick<QueueViews, "open">;
}

/** Jobs that one script of Redis moves or removes: some 10 ms. */
const PORTION = 1_000;

/**
 * Stops all workers from taking jobs of the queue, in all of its shards, until it is resumed. Running jobs end.
 * @throws AppError `invalid_request` if it is paused.
 */
export async function pauseQueue(ctx: QueueActs, name: QueueName): Promise<void> {
  await setPaused(ctx, name, true);
}

/**
 * Lets workers take jobs of the queue again, in all of its shards.
 * @throws AppError `invalid_request` unless a shard is paused.
 */
export async function resumeQueue(ctx: QueueActs, name: QueueName): Promise<void> {
  await setPaused(ctx, name, false);
}

async function setPaused(ctx: QueueActs, name: QueueName, paused: boolean): Promise<void> {
  const queues = await openQueues(ctx, name);
  const states = await answered(Promise.all(queues.map((queue) => queue.isPaused())));
  if (states.every((state) => state === paused)) {
    throw new AppError("invalid_request", `The queue is ${paused ? "paused already" : "not paused"}.`);
  }
  await record(ctx, name, { paused: !paused }, { paused });
  await onEach(queues, (queue) => (paused ? queue.pause() : queue.resume()));
}

/** Puts failed jobs back into the queue: the one with this id, or all. @throws AppError `not_found`. */
export async function retryFailed(ctx: QueueActs, name: QueueName, jobId: string | null): Promise<void> {
  const all = (queue: Queue) => queue.retryJobs({ state: "failed", count: PORTION });
  await actOnJobs(ctx, name, "failed", jobId, all, (job) => job.retry("failed"));
}

/** Makes delayed jobs wait for a worker now: the one with this id, or all. @throws AppError `not_found`. */
export async function promoteDelayed(ctx: QueueActs, name: QueueName, jobId: string | null): Promise<void> {
  const all = (queue: Queue) => queue.promoteJobs({ count: PORTION });
  await actOnJobs(ctx, name, "delayed", jobId, all, (job) => job.promote());
}

/** Removes failed jobs: the one with this id, or all. @throws AppError `not_found`. */
export async function cleanFailed(ctx: QueueActs, name: QueueName, jobId: string | null): Promise<void> {
  const all = async (queue: Queue) => {
    while ((await queue.clean(0, PORTION, "failed")).length === PORTION);
  };
  await actOnJobs(ctx, name, "failed", jobId, all, (job) => job.remove());
}

async function actOnJobs(
  ctx: QueueActs,
  name: QueueName,
  state: "failed" | "delayed",
  jobId: string | null,
  all: (queue: Queue) => Promise<unknown>,
  one: (job: Job) => Promise<unknown>,
): Promise<void> {
  const queues = await openQueues(ctx, name);
  const job = jobId === null ? null : await findJob(queues, state, jobId);
  await record(ctx, name, { requested: false }, { requested: true });
  if (job === null) await onEach(queues, all);
  else await answered(one(job));
}

async function findJob(queues: readonly Queue[], state: string, jobId: string): Promise<Job> {
  const found = await answered(
    Promise.all(
      queues.map(async (queue) => ((await queue.getJobState(jobId)) === state ? await queue.getJob(jobId) : undefined)),
    ),
  );
  const job = found.find((each) => each !== undefined);
  if (job === undefined) throw new AppError("not_found", `The queue has no ${state} job with this id.`);
  return job;
}

/** The shards of a queue. @throws AppError `unavailable`. */
async function openQueues({ queueViews }: QueueActs, name: QueueName): Promise<Queue[]> {
  const views = await queueViews.open().catch((cause: unknown) => {
    throw new AppError("unavailable", "Redis does not answer at the moment.", { cause });
  });
  return views.map(({ queue }) => queue).filter((queue) => queue.name === name);
}

/** Commits the audit entry before the act, so that there is no act without one. */
async function record(ctx: QueueActs, name: QueueName, before: object, after: object): Promise<void> {
  const unseen = { before: { ...before }, after: () => ({ ...after }) };
  await withAuditEntry(ctx, { type: "Queue", id: name }, async () => undefined, unseen);
}

/** Acts on every shard, even if another one fails. */
async function onEach(queues: readonly Queue[], act: (queue: Queue) => Promise<unknown>): Promise<void> {
  const ended = await Promise.allSettled(queues.map(act));
  await answered(Promise.all(ended.map((end) => (end.status === "rejected" ? Promise.reject(end.reason) : null))));
}

/** @throws AppError `unavailable` when Redis does not answer. */
function answered<T>(asked: Promise<T>): Promise<T> {
  return asked.catch((cause: unknown) => {
    if (!isRedisUnavailable(cause)) throw cause;
    const sentence = "Redis does not answer at the moment. Look which shards have changed before you try again.";
    throw new AppError("unavailable", sentence, { cause });
  });
}
