import { openConfirmations } from "../core/commit/confirm-reads.ts";
import { type WorkerDeps, workerOptions } from "../core/processes/worker-options.ts";
import { FairSlots } from "../platform/batching/fair-slots.ts";
import type { Config } from "../platform/config.ts";
import type { DepsOf } from "../platform/http/endpoint.ts";
import { closeAll, type Lifetime } from "../platform/lifetime.ts";
import { openWebhookSender } from "../platform/outgoing/send-webhook.ts";
import { type RunningWorker, startWorker } from "../platform/queues/worker.ts";
import type { RedisClient } from "../platform/redis/connections.ts";
import { webhookVariables } from "./declared.ts";
import { deliverToTarget, FAILING_MAX, REQUESTS_MAX } from "./deliver.ts";
import { FanOut } from "./fan-out.ts";
import { openWebhookRequests, webhookQueue } from "./job.ts";
import { AttemptRecorder } from "./record-attempts.ts";

/**
 * Maximum number of targets that one process serves at once. Waiting costs little, and requests have their own limit.
 */
const SERVED_TARGETS_MAX = 256;
/** Number of connections for the fan-out and for the reads of organizations, which take turns. */
const WEBHOOK_READS = 1;

type Deps = WorkerDeps &
  Pick<Lifetime, "use"> &
  ConstructorParameters<typeof AttemptRecorder>[0] & {
    config: Pick<Config, "ofWings" | "privateReceivers">;
    redis: RedisClient;
    metrics: DepsOf<typeof deliverToTarget>["metrics"];
    /** The process calls `listener` after each commit with events for webhooks. */
    announcements: { listener: () => void };
  };

/**
 * - Trigger: a job per target with due deliveries, added by the fan-out, the sweeper or a replay. The fan-out also
 *   runs in this process. It reads the outbox every second and after commits of this process. Without WEBHOOK_SECRET,
 *   this process takes no jobs of this queue.
 * - Effect: due deliveries are sent and their results recorded, in the order of each voucher's events. While the
 *   standbys do not have an event, its deliveries wait.
 * - Second delivery: requests may be sent twice with the same id. The first recorded result counts.
 * - After a crash: each request whose result was not recorded is sent again, with the same id. Another worker takes
 *   over the job, or the sweeper adds a new job.
 */
export function prepare(service: Deps) {
  const { secret } = webhookVariables.of(service.config);
  if (secret === null) return null;
  const webhookReads = new FairSlots(WEBHOOK_READS);
  const links = { ...service, shards: service.config.queueShards[0] };
  const webhookRequests = service.use(openWebhookRequests(links));
  const webhookSender = openWebhookSender({ allowPrivate: service.config.privateReceivers });
  const fanOut = service.use(new FanOut({ ...service, webhookRequests, webhookReads }));
  service.announcements.listener = () => fanOut.nudge();
  const ctx = {
    ...service,
    secret,
    webhookReads,
    webhookRequests,
    webhookSender,
    confirmations: service.use(openConfirmations(service)),
    attempts: service.use(new AttemptRecorder(service)),
    requests: new FairSlots(REQUESTS_MAX),
    failing: new FairSlots(FAILING_MAX),
    fanOut,
  };
  return { ctx, start: () => start(ctx) };
}

function start(ctx: NonNullable<ReturnType<typeof prepare>>["ctx"]): RunningWorker {
  ctx.fanOut.start();
  const worker = startWorker(webhookQueue, workerOptions(ctx, SERVED_TARGETS_MAX), (_jobId, { endpointId }) =>
    deliverToTarget(ctx, endpointId),
  );
  // Closes both at once, because the closing worker waits for runs, which the closing sender ends.
  return { close: () => closeAll([ctx.webhookSender, worker]) };
}
