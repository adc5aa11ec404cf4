import type { Redis } from "ioredis";
import type { AdminContext } from "./admin-context.ts";
import type { Coalescer } from "./batching/coalescer.ts";
import { Closers } from "./closers.ts";
import type { Config } from "./config.ts";
import { openPool } from "./db/pool.ts";
import type { ResolvedVoucher, WantedVoucher } from "./db/vouchers.ts";
import { nameTokenSecrets, type TokenSecret } from "./domain/reservation-token.ts";
import { Leases } from "./holds/lease.ts";
import { type Limits, openLimits } from "./limits/open-limits.ts";
import { openLog } from "./log.ts";
import {
  type ApiMetrics,
  openApiMetrics,
  openWorkerMetrics,
  type ServiceMetrics,
  type WorkerMetrics,
} from "./metrics/metrics.ts";
import { AwaitedQueue } from "./queues/awaited-queue.ts";
import {
  type RedeemJob,
  type RedeemReply,
  redeemQueue,
  redeemReply,
  type SealJob,
  type SealReply,
  sealQueue,
  sealReply,
} from "./queues/catalog.ts";
import { openFailFast } from "./queues/connections.ts";
import { QueueViews } from "./queues/queue-views.ts";
import { ReplyInbox } from "./queues/replies.ts";
import { SealRequests } from "./queues/seal-requests.ts";
import { pooledRandomBytes } from "./random.ts";
import { KeyAuthenticator } from "./services/authenticate-key.ts";
import { UserAuthenticator } from "./services/authenticate-user.ts";
import { type BurnLanes, openBurnLanes } from "./services/burn-vouchers.ts";
import { measureBacklog } from "./services/measure-backlog.ts";
import { type HoldLanes, openHoldLanes } from "./services/move-holds.ts";
import { openPublicReads, type PublicReads } from "./services/public-reads.ts";
import { openVoucherReads } from "./services/resolve-voucher.ts";
import { openTakings, type Takings } from "./services/take-voucher.ts";
import { TRACES_OFF, type Traces } from "./traces/traces.ts";

/** What a process of the running service has besides what administration has. */
export interface ServiceContext extends AdminContext {
  config: Config;
  tokenSecrets: TokenSecret[];
  redis: Redis;
  leases: Leases;
  /** Null without METRICS_PORT: nothing is measured. */
  metrics: ServiceMetrics | null;
  traces: Traces;
}

export interface ApiContext extends ServiceContext {
  metrics: ApiMetrics | null;
  keys: KeyAuthenticator;
  limits: Limits;
  voucherReads: Coalescer<WantedVoucher, ResolvedVoucher>;
  holdLanes: HoldLanes;
  redeemQueue: AwaitedQueue<RedeemJob, RedeemReply>;
  sealQueue: AwaitedQueue<SealJob, SealReply>;
  takings: Takings;
  publicReads: PublicReads;
  users: UserAuthenticator;
  queueViews: QueueViews;
}

export interface WorkerContext extends ServiceContext {
  metrics: WorkerMetrics | null;
  burnLanes: BurnLanes;
  sealRequests: SealRequests;
}

/**
 * Connections of an API process: two coalesced reads, three for keys, one batch of holds and four waiting rows, six takings, three of what
 * anybody may read, and one for partners' event reads and probes.
 */
const API_POOL_MAX = 20;
/** Connections of a worker process: one burn batch, four waiting rows, four seals, the sweeper. */
const WORKER_POOL_MAX = 10;

/** Opens what an API process needs. Neither Postgres nor Redis has to be there yet. */
export function openApiContext(config: Config, traces: Traces = TRACES_OFF): ApiContext {
  const service = openServiceContext(config, traces, "api", API_POOL_MAX);
  const { pool, redis, log } = service;
  const metrics =
    config.metricsPort === null
      ? null
      : openApiMetrics({ state: pool, max: API_POOL_MAX }, () => measureBacklog(service));
  const observed = { pool, metrics, traces };
  const keys = new KeyAuthenticator(pool, log);
  service.onClose(() => keys.drain());
  const holdLanes = openHoldLanes(observed);
  const inbox = new ReplyInbox(config.redisUrl, log);
  service.onClose(() => inbox.close());
  const redeems = new AwaitedQueue(redeemQueue, redeemReply, redis, inbox, log);
  service.onClose(() => redeems.close());
  const seals = new AwaitedQueue(sealQueue, sealReply, redis, inbox, log);
  service.onClose(() => seals.close());
  service.onClose(() => holdLanes.drain());
  const queueViews = new QueueViews(config.redisUrl, log);
  service.onClose(() => queueViews.close());
  return {
    ...service,
    metrics,
    keys,
    limits: openLimits(config, redis, log),
    voucherReads: openVoucherReads(observed),
    holdLanes,
    redeemQueue: redeems,
    sealQueue: seals,
    takings: openTakings(),
    publicReads: openPublicReads(),
    users: new UserAuthenticator(config.users),
    queueViews,
  };
}

/** Opens what a worker process needs. */
export function openWorkerContext(config: Config, traces: Traces = TRACES_OFF): WorkerContext {
  const service = openServiceContext(config, traces, "worker", WORKER_POOL_MAX);
  const metrics = config.metricsPort === null ? null : openWorkerMetrics({ state: service.pool, max: WORKER_POOL_MAX });
  const burnLanes = openBurnLanes({ ...service, metrics });
  service.onClose(() => burnLanes.drain());
  const sealRequests = new SealRequests(service.redis, service.log);
  service.onClose(() => sealRequests.close());
  return { ...service, metrics, burnLanes, sealRequests };
}

function openServiceContext(
  config: Config,
  traces: Traces,
  role: string,
  poolMax: number,
): Omit<ServiceContext, "metrics"> & { onClose: (closer: () => Promise<unknown>) => void } {
  const log = openLog(config.logLevel, role);
  const closers = new Closers();
  closers.add(() => traces.close());
  const pool = openPool({
    databaseUrl: config.databaseUrl,
    max: poolMax,
    applicationName: role,
    partnerFacing: true,
    log,
  });
  closers.add(() => pool.end());
  const redis = openFailFast(config.redisUrl, role, log);
  closers.add(async () => redis.disconnect());
  return {
    config,
    log,
    pool,
    redis,
    leases: new Leases(redis),
    traces,
    tokenSecrets: nameTokenSecrets(config.reservationTokenSecrets),
    randomBytes: pooledRandomBytes,
    onClose: (closer) => closers.add(closer),
    close: () => closers.close(),
  };
}
