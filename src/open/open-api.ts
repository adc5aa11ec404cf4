import { openKinds } from "../core/callers/bulkhead.ts";
import { POOL_MAX, PROBE_CONNECTIONS } from "../core/callers/caller-kinds.ts";
import { openPreservedSince } from "../core/chain/read-chain.ts";
import { sealQueue } from "../core/chain/seal-job.ts";
import { openConfirmations } from "../core/commit/confirm-reads.ts";
import { KeyAuthenticator } from "../core/keys/authenticate-key.ts";
import { UserAuthenticator } from "../core/keys/authenticate-user.ts";
import { openApiMetrics } from "../core/metrics/open-metrics.ts";
import { PartnerCalls } from "../core/processes/partner-calls.ts";
import { openCompleteUntil } from "../core/redeem/complete-until.ts";
import { openReferenceEnds } from "../core/redeem/end-references.ts";
import { redeemQueue as redeemQueueDefinition } from "../core/redeem/job.ts";
import { openRedemptionReads } from "../core/redeem/read-redemption.ts";
import { openReservationCommitter } from "../core/reserve/reservation-committer.ts";
import { openServerProbe } from "../core/servers/probe-servers.ts";
import { openVoucherReads } from "../core/voucher/resolve-voucher.ts";
import type { Config } from "../platform/config.ts";
import { openPool } from "../platform/db/pool.ts";
import { openLimits } from "../platform/limits/open-limits.ts";
import { openWebhookSender } from "../platform/outgoing/send-webhook.ts";
import { PauseWatch } from "../platform/pauses.ts";
import { AwaitedQueue } from "../platform/queues/awaited-queue.ts";
import { QueueViews } from "../platform/queues/queue-views.ts";
import { nameApiConnection } from "../platform/queues/read-shards.ts";
import { ReplyInbox } from "../platform/queues/reply-inbox.ts";
import { TRACES_OFF, type Traces } from "../platform/traces/traces.ts";
import { AlertTeller } from "../watch/alerts/alert-teller.ts";
import { watchFaults } from "../watch/alerts/watch-faults.ts";
import { openBacklog } from "../watch/measure-backlog.ts";
import { openConsole } from "./open-console.ts";
import { openService } from "./open-service.ts";
import { each, openWings } from "./wings/api.ts";

/** Opens an API process. Postgres and Redis need not be reachable yet. The configuration is from learnRedis. */
export function openApi(config: Config, traces: Traces = TRACES_OFF) {
  const [shards] = config.queueShards;
  const redisName = nameApiConnection(shards);
  const service = openService(config, { traces, role: "api", redisName, connectionsMax: POOL_MAX });
  const { pool, redis, deployment, log } = service;
  const probes = openPool({
    databaseUrl: config.databaseUrl,
    max: PROBE_CONNECTIONS,
    applicationName: "api-probe",
    deployment,
    answerTimeoutMs: 1_500,
    log,
  });
  service.use({ close: () => probes.end() });
  const keys = service.use(new KeyAuthenticator(pool, log));
  const inbox = service.use(new ReplyInbox(config.redisUrl, log));
  const onForeignReply = () => {
    metrics?.foreignMessages.with("reply").inc();
    service.report.faults.count("foreignMessages");
  };
  const resources = { redis, inbox, shards, deployment, log, onForeignReply };
  const redeemQueue = service.use(new AwaitedQueue(redeemQueueDefinition, resources));
  const probeServers = openServerProbe({ ...service, probes, redeemQueue });
  const backlog = openBacklog({ ...service, probeServers }, Object.assign({}, ...each("backlog")));
  const metrics = config.metricsPort === null ? null : openApiMetrics(service, backlog);
  metrics?.callsDropped.with().inc(0);
  const observed = { pool, metrics, traces };
  const confirmations = service.use(openConfirmations(service));
  const { partnerCalls, portalReads, ...otherKinds } = openKinds();
  const confirming = { ...service, confirmations };
  const webhookSender = service.use(openWebhookSender({ ...config.webhooks, endRuns: service.endRuns }));
  const alerts = service.use(new AlertTeller({ ...service, webhookSender }));
  const readFinders = each("readFinders");
  const queueViews = service.use(new QueueViews(config, deployment, log));
  service.use(watchFaults({ ...service, ...otherKinds, probeServers, redeemQueue, queueViews, readFinders, alerts }));
  const core = {
    ...service,
    metrics,
    calls: service.use(
      new PartnerCalls({ redis, deployment, log, onDropped: (calls) => metrics?.callsDropped.with().inc(calls) }),
    ),
    keys,
    limits: openLimits(config, redis, log),
    voucherReads: openVoucherReads(observed),
    confirmations,
    referenceEnds: service.use(openReferenceEnds(service)),
    pauses: service.use(new PauseWatch()),
    redeemQueue,
    sealQueue: service.use(new AwaitedQueue(sealQueue, resources)),
    reservationCommitter: service.use(openReservationCommitter(observed)),
    ...otherKinds,
    partnerCalls,
    portalReads,
    /** Dependencies of the portal, which has connections of its own instead of those of partners' calls. */
    inPortal: {
      partnerCalls: portalReads,
      completeUntil: openCompleteUntil({ ...confirming, partnerCalls: portalReads }),
    },
    redemptionReads: service.use(openRedemptionReads(service)),
    webhookSender,
    queueLinks: resources,
    readFinders,
    preservedSince: openPreservedSince(pool),
    completeUntil: openCompleteUntil({ ...confirming, partnerCalls }),
    probes,
    probeServers,
    users: new UserAuthenticator(config.users, deployment.clock),
    console: openConsole(service),
    queueViews,
  };
  return { ...core, ...openWings(core) };
}

export type ApiContext = ReturnType<typeof openApi>;
