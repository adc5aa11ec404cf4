import pLimit from "p-limit";
import { Closers } from "./closers.ts";
import type { Config } from "./config.ts";
import { Deployment } from "./db/deployment.ts";
import { openPool } from "./db/pool.ts";
import { nameTokenSecrets } from "./domain/reservation-token.ts";
import { Leases } from "./holds/lease.ts";
import { openLimits } from "./limits/open-limits.ts";
import { openLog } from "./log.ts";
import type { WorkerMetrics } from "./metrics/metrics.ts";
import { openApiMetrics, openWorkerMetrics } from "./metrics/open-metrics.ts";
import { AwaitedQueue } from "./queues/awaited-queue.ts";
import { redeemQueue, sealQueue } from "./queues/catalog.ts";
import { QueueViews } from "./queues/queue-views.ts";
import { nameApiConnection } from "./queues/read-shards.ts";
import { ReplyInbox } from "./queues/replies.ts";
import { SealRequests } from "./queues/seal-requests.ts";
import { WebhookRequests } from "./queues/webhook-requests.ts";
import type { WorkerOptions } from "./queues/worker.ts";
import { pooledRandomBytes } from "./random.ts";
import { isCluster, openFailFast } from "./redis/connections.ts";
import { findClusterRisks } from "./services/admin/find-cluster-risks.ts";
import { findDurabilityRisks, warnOfRisks } from "./services/admin/find-durability-risks.ts";
import { measureBacklog } from "./services/admin/measure-backlog.ts";
import { KeyAuthenticator } from "./services/auth/authenticate-key.ts";
import { UserAuthenticator } from "./services/auth/authenticate-user.ts";
import { openBulkhead } from "./services/batches/bulkhead.ts";
import { readLogSettings } from "./services/log/log-settings.ts";
import { AcquisitionCommitter } from "./services/marketplace/acquisition-committer.ts";
import { openPreservedSince } from "./services/partner/read-chain.ts";
import { openCompleteUntil } from "./services/partner/read-redemptions.ts";
import { openReservationCommitter } from "./services/partner/reservation-committer.ts";
import { openVoucherReads } from "./services/partner/resolve-voucher.ts";
import { openOutcomeReads } from "./services/redeem/read-outcomes.ts";
import { openRedeemCommitter } from "./services/redeem/redeem-committer.ts";
import { openSealCommitter } from "./services/redeem/seal-committer.ts";
import { REQUESTS_MAX } from "./services/webhooks/deliver.ts";
import { FanOut } from "./services/webhooks/fan-out.ts";
import { openAttemptRecorder } from "./services/webhooks/record-attempts.ts";
import { openWebhookSender } from "./services/webhooks/send-webhook.ts";
import { TRACES_OFF, type Traces } from "./traces/traces.ts";

/** Connections for public reads. A flood of them must leave the other connections to partners. */
const PUBLIC_READS = 3;
/** Public reads that may wait for a connection: a few seconds' worth of the largest pages. */
const PUBLIC_READS_WAITING_MAX = 50;
/** Connections for partners' unbatched calls: event chains, redemptions, receipts and webhook endpoints. */
const PARTNER_CALLS = 2;
/** Partners' calls that may wait for a connection: half a second's worth of chains of usual length. */
const PARTNER_CALLS_WAITING_MAX = 200;
/** The connection for moves of sandboxes' times. */
const SANDBOX_ADVANCES = 1;
/** Moves of sandboxes' times that may wait for the connection: a minute's worth of large ones. */
const SANDBOX_ADVANCES_WAITING_MAX = 20;
/** Tests of webhook endpoints that may run at a time, up to 15 seconds each, and that may wait. */
const WEBHOOK_TESTS = 8;
const WEBHOOK_TESTS_WAITING_MAX = 8;
/** A connection for readiness probes only, so that a busy pool does not make Postgres look unavailable. */
const PROBES = 1;
/** Connections for the fan-out and for reads of due deliveries. */
const WEBHOOK_READS = 1;

/** Postgres connections per process, at most. A test compares them with `docs/scaling.md`. */
export const CONNECTIONS_MAX = {
  /** Batched look-ups, outcomes, keys, reservations (fast path, slow path), acquisitions (shared reads, batch, waiting), a scrape, unbatched calls, moves of sandboxes and probes. */
  api: 2 + 1 + 3 + 1 + 4 + (2 + 1 + 3) + 1 + PUBLIC_READS + PARTNER_CALLS + SANDBOX_ADVANCES + PROBES,
  /** Redemptions (fast path, slow path), seals (the same), the sweeper, the log, and webhooks (reads, recorded attempts). */
  worker: 1 + 4 + 1 + 4 + 1 + 1 + (WEBHOOK_READS + 1),
};

/** Opens the context of an API process. Postgres and Redis need not be reachable yet. */
export function openApiContext(config: Config, traces: Traces = TRACES_OFF) {
  const service = openServiceContext(config, traces, "api", CONNECTIONS_MAX.api - PROBES);
  const { pool, redis, deployment, log } = service;
  const metrics = config.metricsPort === null ? null : openApiMetrics(pool, () => measureBacklog(service));
  const probes = openPool({
    databaseUrl: config.databaseUrl,
    max: PROBES,
    applicationName: "api-probe",
    deployment,
    answerTimeoutMs: 1_500,
    log,
  });
  service.onClose(() => probes.end());
  const observed = { pool, metrics, traces };
  const keys = service.drainLater(new KeyAuthenticator(pool, log));
  const inbox = service.closeLater(new ReplyInbox(config.redisUrl, log));
  const links = {
    redis,
    inbox,
    shards: config.queueShards[0],
    deployment,
    log,
    onForeignReply: () => metrics?.foreignMessages.with("reply").inc(),
  };
  return {
    ...service,
    metrics,
    keys,
    limits: openLimits(config, redis, log),
    voucherReads: openVoucherReads(observed),
    outcomeReads: openOutcomeReads(service),
    redeemQueue: service.closeLater(new AwaitedQueue(redeemQueue, links)),
    sealQueue: service.closeLater(new AwaitedQueue(sealQueue, links)),
    reservationCommitter: service.drainLater(openReservationCommitter(observed)),
    acquisitions: service.drainLater(new AcquisitionCommitter({ ...observed, randomBytes: service.randomBytes })),
    /** Unbatched reads that need no partner key. */
    publicReads: openBulkhead({ connections: PUBLIC_READS, waitingMax: PUBLIC_READS_WAITING_MAX }),
    /** Partners' calls that are not batched: reads, and changes of webhook endpoints. */
    partnerCalls: openBulkhead({ connections: PARTNER_CALLS, waitingMax: PARTNER_CALLS_WAITING_MAX }),
    sandboxAdvances: openBulkhead({ connections: SANDBOX_ADVANCES, waitingMax: SANDBOX_ADVANCES_WAITING_MAX }),
    webhookRequests: service.closeLater(new WebhookRequests(redis, config.queueShards[0], deployment, log)),
    webhookSender: service.closeLater(openWebhookSender(config.webhooks)),
    webhookTests: openBulkhead({ connections: WEBHOOK_TESTS, waitingMax: WEBHOOK_TESTS_WAITING_MAX }),
    preservedSince: openPreservedSince(pool),
    completeUntil: openCompleteUntil(pool),
    probes,
    users: new UserAuthenticator(config.users),
    queueViews: service.closeLater(new QueueViews(config, deployment, log)),
  };
}

export type ApiContext = ReturnType<typeof openApiContext>;

/**
 * Opens the context of a worker process. Postgres and Redis need not be reachable yet.
 * @throws LogSettingsError when the process is to run the log's sequencer and its key or its policy cannot be used.
 */
export function openWorkerContext(config: Config, traces: Traces = TRACES_OFF) {
  const { keyFile } = config.transparencyLog;
  const logSettings =
    keyFile !== null && config.workerQueues.includes("log")
      ? readLogSettings({ ...config.transparencyLog, keyFile }, config.production)
      : null;
  const service = openServiceContext(config, traces, "worker", CONNECTIONS_MAX.worker);
  const metrics = config.metricsPort === null ? null : openWorkerMetrics(service.pool);
  const { redis, deployment, log } = service;
  const webhookRequests = service.closeLater(new WebhookRequests(redis, config.queueShards[0], deployment, log));
  const webhooks = openWebhooks({ ...service, webhookRequests, metrics });
  // Without `webhooks`, another worker reads the outbox within a second.
  const onAnnounced = () => webhooks?.fanOut.nudge();
  return {
    ...service,
    metrics,
    redeemCommitter: service.drainLater(openRedeemCommitter({ ...service, metrics, onAnnounced })),
    sealCommitter: service.drainLater(openSealCommitter({ ...service, metrics, onAnnounced })),
    sealRequests: service.closeLater(new SealRequests(redis, config.queueShards[0], deployment, log)),
    webhookRequests,
    webhooks,
    logSettings,
  };
}

/** Opens what deliveries need, in a process that serves their queue. Null in others, and without WEBHOOK_SECRET. */
function openWebhooks(
  service: ReturnType<typeof openServiceContext> & { webhookRequests: WebhookRequests; metrics: WorkerMetrics | null },
) {
  const { config } = service;
  const { secret, allowPrivate } = config.webhooks;
  if (secret === null || !config.workerQueues.includes("webhook")) return null;
  const webhookReads = pLimit(WEBHOOK_READS);
  const stopping = new AbortController();
  return {
    ...service,
    webhookReads,
    webhookSender: service.closeLater(openWebhookSender({ allowPrivate })),
    attempts: service.drainLater(openAttemptRecorder(service)),
    secret,
    requests: pLimit(REQUESTS_MAX),
    failing: new Set<string>(),
    stopping: stopping.signal,
    stop: () => stopping.abort(),
    fanOut: new FanOut({ ...service, webhookReads }),
  };
}

export type WorkerContext = ReturnType<typeof openWorkerContext>;

/** The options that all workers of a process share. */
export function workerOptions(ctx: WorkerContext, concurrency: number): WorkerOptions {
  const { config, deployment, log, metrics } = ctx;
  return {
    redisUrl: config.redisUrl,
    queueShards: config.queueShards,
    workerShards: config.workerShards,
    deployment,
    concurrency,
    log,
    onForeignJob: () => metrics?.foreignMessages.with("job").inc(),
    onShard: (queue, shard, fetchers) => metrics?.queueFetchers.with(queue, shard).set(fetchers),
  };
}

/** Opens what API and worker processes have in common. */
function openServiceContext(config: Config, traces: Traces, role: string, poolMax: number) {
  const log = openLog(config.logLevel, role);
  const closers = new Closers();
  closers.add(() => traces.close());
  const deployment = new Deployment(log);
  const pool = openPool({ databaseUrl: config.databaseUrl, max: poolMax, applicationName: role, deployment, log });
  closers.add(() => pool.end());
  void deployment.connect(pool);
  closers.add(async () => deployment.close());
  const name = role === "api" ? nameApiConnection(config.queueShards[0]) : role;
  const redis = openFailFast(config.redisUrl, name, log);
  closers.add(async () => redis.disconnect());
  if (config.production) void deployment.ready().then(() => warnOfRisks(log, findDurabilityRisks({ pool, redis })));
  if (isCluster(redis)) void warnOfRisks(log, findClusterRisks(config.redisUrl, config.queueShards[0]));
  return {
    config,
    log,
    pool,
    deployment,
    redis,
    leases: new Leases(redis, deployment),
    traces,
    tokenSecrets: nameTokenSecrets(config.reservationTokenSecrets),
    randomBytes: pooledRandomBytes,
    onClose: (closer: () => Promise<unknown>) => closers.add(closer),
    /** Closes a resource with the context, before those that were opened earlier. Returns the resource. */
    closeLater<Resource extends { close(): Promise<unknown> }>(resource: Resource): Resource {
      closers.add(() => resource.close());
      return resource;
    },
    /** As closeLater, for a resource that is drained. */
    drainLater<Resource extends { drain(): Promise<unknown> }>(resource: Resource): Resource {
      closers.add(() => resource.drain());
      return resource;
    },
    close: () => closers.close(),
  };
}
