import { AppError } from "../../platform/api/errors.ts";
import type { QueueSettings } from "../../platform/queues/queue-settings.ts";
import type { QueueView, QueueViews } from "../../platform/queues/queue-views.ts";
import { isRedisUnavailable } from "../../platform/redis/connections.ts";
import { type Act, act, type Definition } from "../act.ts";
import { type Fields, optional, text } from "../fields.ts";
import type { OperatorRole } from "../operator-role.ts";
import { type AuditContext, withAuditEntry } from "../with-audit-entry.ts";

type Queue = QueueView["queue"];
type Job = NonNullable<Awaited<ReturnType<Queue["getJob"]>>>;

/** The queues in Redis. */
interface QueueAccess {
  queueViews: Pick<QueueViews, "open">;
}
type Ctx = AuditContext & QueueAccess;

/** Number of jobs that one Redis script moves or removes. A script takes some 10 ms. */
const PORTION = 1_000;

const ON_QUEUE = { on: "queue", only: "console", examples: [""] } as const;
const ON_ALL = { reason: text("Reason", 500, { hint: "Operators read it beside the queue, and in the audit." }) };
const ON_JOBS = {
  job: optional(text("Job", 128, { hint: "The id of one job. Empty: all of them.", fromLink: true })),
};

/** Pauses or resumes all shards of a queue. @throws AppError `wrong_status` if all shards are already in that state. */
const pausing = (
  verb: "pause" | "resume",
  words: Pick<Definition<typeof ON_ALL, object, QueueAccess>, "title" | "about">,
) =>
  act<typeof ON_ALL, { queue: string }, QueueAccess>({
    ...ON_QUEUE,
    ...words,
    name: `queue ${verb}`,
    role: "admin",
    fields: ON_ALL,
    async run(ctx, queue) {
      const [paused, queues] = [verb === "pause", await openQueues(ctx, queue)];
      const states = await answered(Promise.all(queues.map((each) => each.isPaused())));
      if (states.every((state) => state === paused)) {
        throw new AppError("wrong_status", `The queue is ${paused ? "paused already" : "not paused"}.`);
      }
      await record(ctx, queue, { paused: !paused }, { paused });
      await onEach(queues, (each) => (paused ? each.pause() : each.resume()));
      return { queue };
    },
    said: ({ queue }) => `The queue ${queue} is ${verb}d.`,
  });

/** An act on jobs in one state: on all such jobs of a shard, or on one job. */
interface JobAct extends Pick<Definition<typeof ON_JOBS, object, QueueAccess>, "title" | "about"> {
  state: "failed" | "delayed";
  all: (queue: Queue) => Promise<unknown>;
  one: (job: Job) => Promise<unknown>;
}

/** An act on the job with an id, or on all jobs in one state. @throws AppError `not_found`. */
const onJobs = (verb: string, role: OperatorRole, { state, all, one, ...words }: JobAct) =>
  act<typeof ON_JOBS, { queue: string }, QueueAccess>({
    ...ON_QUEUE,
    ...words,
    name: `queue ${verb}`,
    role,
    fields: ON_JOBS,
    refused: "job",
    async run(ctx, queue, { job: jobId }) {
      const queues = await openQueues(ctx, queue);
      const job = jobId === null ? null : await findJob(queues, state, jobId);
      await record(ctx, queue, { requested: false }, { requested: true });
      if (job === null) await onEach(queues, all);
      else await answered(one(job));
      return { queue };
    },
    said: ({ queue }) => `Asked for on the queue ${queue}.`,
  });

/**
 * All acts of operators on a queue. There is no act that changes a job, because it would write back redacted data, and
 * no act that removes a waiting job, because its caller still waits.
 */
export const queueActs = ({
  whilePaused,
}: Pick<QueueSettings, "whilePaused">): readonly Act<Fields, object, QueueAccess>[] => [
  pausing("pause", { title: "Pause the queue", about: whilePaused }),
  pausing("resume", { title: "Resume the queue", about: "Workers take its jobs again, in all of its shards." }),
  onJobs("retry", "operator", {
    title: "Retry failed jobs of the queue",
    about: "Workers try them again. What was done is not done twice.",
    state: "failed",
    all: (queue) => queue.retryJobs({ state: "failed", count: PORTION }),
    one: (job) => job.retry("failed"),
  }),
  onJobs("promote", "admin", {
    title: "Promote delayed jobs of the queue",
    about: "They wait for a worker now. The service delays none.",
    state: "delayed",
    all: (queue) => queue.promoteJobs({ count: PORTION }),
    one: (job) => job.promote(),
  }),
  onJobs("clean", "operator", {
    title: "Remove failed jobs of the queue",
    about: "They are deleted from Redis. Nothing in Postgres changes.",
    state: "failed",
    async all(queue) {
      while ((await queue.clean(0, PORTION, "failed")).length === PORTION);
    },
    one: (job) => job.remove(),
  }),
];

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
async function openQueues({ queueViews }: QueueAccess, name: string): Promise<Queue[]> {
  const views = await queueViews.open().catch((cause: unknown) => {
    throw new AppError("unavailable", "Redis does not answer at the moment.", { cause });
  });
  return views.map(({ queue }) => queue).filter((queue) => queue.name === name);
}

/** Commits the audit entry before the act, so that no act lacks its entry. */
async function record(ctx: Ctx, name: string, before: object, after: object): Promise<void> {
  const unseen = { before: { ...before }, after: () => ({ ...after }) };
  await withAuditEntry(ctx, { type: "Queue", id: name }, async () => undefined, unseen);
}

/** Acts on every shard. Continues with the other shards if one fails. */
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
