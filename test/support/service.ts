import type { api as marketplace } from "../../src/marketplace/in-api.ts";
import { CONFIG_PARTS } from "../../src/open/config-parts.ts";
import { type ApiContext, openApi } from "../../src/open/open-api.ts";
import { learnRedis } from "../../src/open/open-redis.ts";
import { openWorkerService, type WorkerService } from "../../src/open/open-worker-service.ts";
import { serveApi } from "../../src/open/serve-api.ts";
import { WINGS } from "../../src/open/wings.ts";
import { readConfig } from "../../src/platform/config.ts";
import { CONNECTION_LIMITS } from "../../src/platform/http/server.ts";
import type { api as webhooks } from "../../src/webhooks/in-api.ts";
import type * as webhook from "../../src/webhooks/worker.ts";
import { prepareWorkers } from "../../workers/prepare-workers.ts";
import * as redeem from "../../workers/redeem.ts";
import * as seal from "../../workers/seal.ts";
import * as sweep from "../../workers/sweep.ts";
import { assertInvariants } from "./invariants.ts";
import type { TestServers } from "./servers.ts";
import { untilStarted } from "./until.ts";

/** The base address in responses. The API listens on another address. */
export const BASE_URL = "https://vouchers.test";

type Environment = Record<string, string>;

/** Returns the configuration of a test process, with a free port, no logging and no rate limits. */
export function testConfig(servers: TestServers, env: Environment = {}) {
  return readConfig(testEnvironment(servers, env), CONFIG_PARTS);
}

/** Returns the variables that give a process this configuration. */
export function testEnvironment(servers: TestServers, env: Environment = {}): Environment {
  return {
    DATABASE_URL: servers.databaseUrl,
    OPS_DATABASE_URL: servers.adminUrl,
    REDIS_URL: servers.redisUrl,
    QUEUE_SHARDS: String(servers.queueShards[0]),
    BASE_URL,
    PORT: "0",
    LOG_LEVEL: "silent",
    RATE_LIMIT_RPS: "0",
    MISS_LIMIT_PER_MINUTE: "0",
    RESERVATION_TOKEN_SECRET: "test-reservation-token-secret",
    ...env,
  };
}

/** An API in this process, on real sockets. */
export interface TestApi {
  url: string;
  /** The address of the API's metrics, if `env` has a METRICS_PORT. */
  metricsUrl: string;
  /** The API's context, with the objects that the wings open. */
  ctx: ApiContext & ReturnType<typeof marketplace.open> & ReturnType<typeof webhooks.open>;
  close(): Promise<void>;
}

/** Clients keep connections open. With the service's own limit, each file would close two seconds later. */
const TEST_LIMITS = { ...CONNECTION_LIMITS, closingIdleMs: 50 };

/** Starts an API and waits until it can redeem. */
export async function startApi(servers: TestServers, env: Environment = {}, limits = TEST_LIMITS): Promise<TestApi> {
  const api = await startApiUnready(servers, env, limits);
  await untilStarted(() => api.ctx.redeemQueue.hasOpened);
  await untilCurrent(api);
  return api;
}

/** Waits until an API that counts as frozen redeems again. Loading code may have blocked this process for seconds. */
export async function untilCurrent({ ctx }: TestApi): Promise<void> {
  await untilStarted(() => !ctx.pauses.isOutdated(performance.now()));
}

export async function startApiUnready(
  servers: TestServers,
  env: Environment = {},
  limits = TEST_LIMITS,
): Promise<TestApi> {
  const ctx = openApi(await learnRedis(testConfig(servers, env))) as TestApi["ctx"];
  const { port, metricsPort } = await serveApi(ctx, limits);
  return {
    url: `http://127.0.0.1:${port}`,
    metricsUrl: `http://127.0.0.1:${metricsPort}/metrics`,
    ctx,
    close: closeOnce(servers, ctx.close),
  };
}

/** Returns a function that runs `closer` at most once. The servers call it at the end of the file. */
function closeOnce(servers: TestServers, closer: () => Promise<void>): () => Promise<void> {
  let closed: Promise<void> | undefined;
  const close = () => {
    closed ??= closer();
    return closed;
  };
  servers.onClose(close);
  return close;
}

/** Ends a test file: closes everything that it started, and fails if its database violates an invariant. */
export async function endService(servers: TestServers): Promise<void> {
  await servers.closeOpened();
  await assertInvariants(servers.db).finally(() => servers.close());
}

/** Opens the context of the redeem worker, the seal worker and the sweeper, without their queues. */
export function openWorkerContext(config: ReturnType<typeof testConfig>) {
  return completeContext(openWorkerService(config, WINGS));
}

function completeContext(service: WorkerService) {
  const contexts = { ...redeem.prepare(service).ctx, ...seal.prepare(service).ctx, ...sweep.prepare(service).ctx };
  return { ...contexts, ...service };
}

export type WorkerContext = ReturnType<typeof openWorkerContext>;

type WebhookContext = NonNullable<ReturnType<typeof webhook.prepare>>["ctx"];

/** Workers in this process. */
export interface TestWorker {
  /** The address of the workers' metrics, if `env` has a METRICS_PORT. */
  metricsUrl: string;
  /** The context of webhooks, if WORKER_QUEUES names their queue. */
  ctx: WorkerContext & Partial<WebhookContext> & Pick<WebhookContext, "webhookRequests">;
  close(): Promise<void>;
}

/** Starts workers with their own connections. The sweeper runs only if WORKER_QUEUES names it. */
export async function startWorkers(servers: TestServers, env: Environment = {}): Promise<TestWorker> {
  const service = openWorkerService(
    await learnRedis(testConfig(servers, { WORKER_QUEUES: "redeem,seal", ...env })),
    WINGS,
  );
  const complete = completeContext(service);
  const { ctx, metricsPort, start } = await prepareWorkers(service);
  await start();
  return {
    metricsUrl: `http://127.0.0.1:${metricsPort}/metrics`,
    ctx: { ...complete, ...ctx } as TestWorker["ctx"],
    close: closeOnce(servers, service.close),
  };
}
