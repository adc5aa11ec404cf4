import { FairSlots } from "./batching/fair-slots.ts";
import type { Config } from "./config.ts";
import { openPool } from "./db/pool.ts";
import { openLimits } from "./limits/open-limits.ts";
import { openApiMetrics } from "./metrics/open-metrics.ts";
import { openConsole } from "./open-console.ts";
import { openService } from "./open-service.ts";
import { AwaitedQueue, ReplyInbox } from "./queues/awaited-queue.ts";
import { redeemQueue, sealQueue } from "./queues/catalog.ts";
import { openWebhookRequests } from "./queues/job-requests.ts";
import { QueueViews } from "./queues/queue-views.ts";
import { nameApiConnection } from "./queues/read-shards.ts";
import { KeyAuthenticator } from "./services/auth/authenticate-key.ts";
import { UserAuthenticator } from "./services/auth/authenticate-user.ts";
import { openBulkhead } from "./services/batches/bulkhead.ts";
import { openConfirmedReads, openReferenceEnds } from "./services/batches/end-references.ts";
import { openPreservedSince } from "./services/chain/read-chain.ts";
import { AcquisitionCommitter } from "./services/marketplace/acquisition-committer.ts";
import { openCompleteUntil } from "./services/partner/list-redemptions.ts";
import { openReservationCommitter } from "./services/partner/reservation-committer.ts";
import { measureBacklog } from "./services/servers/measure-backlog.ts";
import { openVoucherReads } from "./services/voucher/resolve-voucher.ts";
import { openWebhookSender } from "./services/webhooks/send-webhook.ts";
import { TRACES_OFF, type Traces } from "./traces/traces.ts";

/** Public reads without a partner's key. A flood of them leaves the other connections to partners. A few seconds' worth of large pages may wait. */
const PUBLIC_READS = { connections: 3, waitingMax: 50 };
/** Partners' unbatched calls: chains, redemptions, receipts, webhook endpoints. Half a second's worth of chains of usual length may wait. */
const PARTNER_CALLS = { connections: 2, waitingMax: 200 };
/** Moves of sandboxes' times. A minute's worth of large ones may wait. */
const SANDBOX_ADVANCES = { connections: 1, waitingMax: 20 };
/** Tests of webhook endpoints at a time, up to 15 seconds each. They use no connection to Postgres. */
const WEBHOOK_TESTS = 16;
/** A connection for readiness probes only, so that a busy pool does not make Postgres look unavailable. */
const PROBES = 1;

/** Connections of look-ups (2), ends of references (1), keys (3), reservations (1 and 4), acquisitions (2, 1 and 3) and a scrape (1). */
const BATCHED = 18;
const POOL_MAX = BATCHED + PUBLIC_READS.connections + PARTNER_CALLS.connections + SANDBOX_ADVANCES.connections;

/** Postgres connections of an API process, at most. A test compares it with `docs/scaling.md`. */
export const API_CONNECTIONS_MAX = POOL_MAX + PROBES;

/** Opens an API process. Postgres and Redis need not be reachable yet. */
export function openApi(config: Config, traces: Traces = TRACES_OFF) {
  const [shards] = config.queueShards;
  const redisName = nameApiConnection(shards);
  const service = openService(config, { traces, role: "api", redisName, connectionsMax: POOL_MAX });
  const { pool, redis, deployment, log, randomBytes } = service;
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
  const onForeignReply = () => metrics?.foreignMessages.with("reply").inc();
  const links = { redis, inbox, shards, deployment, log, onForeignReply };
  const referenceEnds = service.drainLater(openReferenceEnds(service));
  const partnerCalls = openBulkhead(PARTNER_CALLS);
  const confirmedReads = openConfirmedReads(service, partnerCalls, referenceEnds);
  return {
    ...service,
    metrics,
    keys,
    limits: openLimits(config, redis, log),
    voucherReads: openVoucherReads(observed),
    referenceEnds,
    confirmedReads,
    redeemQueue: service.closeLater(new AwaitedQueue(redeemQueue, links)),
    sealQueue: service.closeLater(new AwaitedQueue(sealQueue, links)),
    reservationCommitter: service.drainLater(openReservationCommitter(observed)),
    acquisitions: service.drainLater(new AcquisitionCommitter({ ...observed, log, randomBytes })),
    publicReads: openBulkhead(PUBLIC_READS),
    partnerCalls,
    sandboxAdvances: openBulkhead(SANDBOX_ADVANCES),
    webhookRequests: service.closeLater(openWebhookRequests(links)),
    webhookSender: service.closeLater(openWebhookSender(config.webhooks)),
    webhookTests: new FairSlots(WEBHOOK_TESTS),
    preservedSince: openPreservedSince(pool),
    completeUntil: openCompleteUntil(service, confirmedReads),
    probes,
    users: new UserAuthenticator(config.users, deployment.clock),
    console: openConsole(service, config),
    queueViews: service.closeLater(new QueueViews(config, deployment, log)),
  };
}

export type ApiContext = ReturnType<typeof openApi>;
