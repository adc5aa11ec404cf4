import {
  cleanFailed,
  pauseQueue,
  promoteDelayed,
  type QueueActs,
  resumeQueue,
  retryFailed,
} from "../../acts/manage-queues.ts";
import type { OperatorRole } from "../../acts/operator-role.ts";
import { QUEUE_NAMES, type QueueName } from "../../platform/queues/queue-settings.ts";
import { type Acting, type Action, defineAction } from "./action.ts";
import { line, optionalLine } from "./fields.ts";

const reason = line("Reason", 500, "Operators read it beside the queue, and in the audit.");
const job = {
  ...optionalLine("Job", 128, "The id of one job. Empty: all of them."),
  /** A link to the form may name it. */
  fromQuery: true,
};

const actsOf = ({ pool, audited, api: { queueViews } }: Acting): QueueActs => ({ pool, audited, queueViews });

/** The effect of a pause, for each queue. */
const PAUSED: Record<QueueName, string> = {
  redeem: "While it is paused, every redeem is answered with 503. Jobs that run now end.",
  seal: "While it is paused, claims, purchases and voidings are sealed later. Redemptions go on.",
  sweep: "While it is paused, nothing is repaired or counted, and the ends of reservations are recorded later.",
  log: "While it is paused, events get no place in the log and no receipt.",
  webhook: "While it is paused, webhooks wait.",
};

/** An act on jobs of a queue in one state. */
const onJobs = (
  role: OperatorRole,
  queue: QueueName,
  verb: string,
  title: string,
  about: string,
  act: (ctx: QueueActs, queue: QueueName, jobId: string | null) => Promise<void>,
) =>
  defineAction({
    is: [`/queues/${queue}/${verb}`, `queue ${verb}`, `${title} of the queue ${queue}`],
    role,
    about: () => about,
    fields: { job },
    refused: "job",
    run: async (ctx, _id, values) => {
      await act(actsOf(ctx), queue, values.job);
      return `/queues/${queue}`;
    },
  });

/** An act on a whole queue. */
const onQueue = (
  queue: QueueName,
  verb: string,
  title: string,
  about: string,
  act: (ctx: QueueActs, queue: QueueName) => Promise<void>,
) =>
  defineAction({
    is: [`/queues/${queue}/${verb}`, `queue ${verb}`, `${title} the queue ${queue}`],
    role: "admin",
    about: () => about,
    fields: { reason },
    run: async (ctx) => {
      await act(actsOf(ctx), queue);
      return `/queues/${queue}`;
    },
  });

/**
 * All that operators may do to queues. Other acts on jobs would send redacted data back, or take away jobs that callers
 * wait for.
 */
export const QUEUE_ACTIONS: Action[] = QUEUE_NAMES.flatMap((queue) => [
  onQueue(queue, "pause", "Pause", PAUSED[queue], pauseQueue),
  onQueue(queue, "resume", "Resume", "Workers take its jobs again, in all of its shards.", resumeQueue),
  onJobs(
    "operator",
    queue,
    "retry",
    "Retry failed jobs",
    "Workers try them again. What was done is not done twice.",
    retryFailed,
  ),
  onJobs(
    "admin",
    queue,
    "promote",
    "Promote delayed jobs",
    "They wait for a worker now. The service delays none.",
    promoteDelayed,
  ),
  onJobs(
    "operator",
    queue,
    "clean",
    "Remove failed jobs",
    "They are deleted from Redis. Nothing in Postgres changes.",
    cleanFailed,
  ),
]);
