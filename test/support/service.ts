import { createApp } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import { type ApiContext, openApiContext, openWorkerContext, type WorkerContext } from "../../src/context.ts";
import { listen } from "../../src/http/server.ts";
import { serveMetrics } from "../../src/metrics/serve-metrics.ts";
import { startRedeemWorker } from "../../workers/redeem.ts";
import { startSealWorker } from "../../workers/seal.ts";
import { startSweepWorker } from "../../workers/sweep.ts";
import type { TestServers } from "./servers.ts";
import { until } from "./until.ts";

/** The base address that answers name; not the address that listens. */
export const BASE_URL = "https://vouchers.test";

type Environment = Record<string, string>;

/** The configuration of a test process: a port of its own, no log, and no limits unless they are what is tested. */
export function testConfig(servers: TestServers, env: Environment = {}) {
  return readConfig({
    DATABASE_URL: servers.databaseUrl,
    REDIS_URL: servers.redisUrl,
    BASE_URL,
    PORT: "0",
    LOG_LEVEL: "silent",
    RATE_LIMIT_RPS: "0",
    MISS_LIMIT_PER_MINUTE: "0",
    RESERVATION_TOKEN_SECRET: "test-reservation-token-secret",
    ...env,
  });
}

/** An API in this process, on real sockets. */
export interface TestApi {
  url: string;
  /** Where its metrics are, with a METRICS_PORT. */
  metricsUrl: string;
  ctx: ApiContext;
  close(): Promise<void>;
}

/** Starts an API and waits until it can redeem. */
export async function startApi(servers: TestServers, env: Environment = {}): Promise<TestApi> {
  const ctx = openApiContext(testConfig(servers, env));
  await until(() => ctx.redeemQueue.isOpen);
  const metrics = await serveMetrics(ctx);
  const server = await listen(createApp(ctx), ctx.config.port, ctx.log, (code) =>
    ctx.metrics?.requests.countRefusal(code),
  );
  return {
    url: `http://127.0.0.1:${server.port}`,
    metricsUrl: `http://127.0.0.1:${metrics?.port}/metrics`,
    ctx,
    async close() {
      await server.close();
      await metrics?.close();
      await ctx.close();
    },
  };
}

/** A worker process's work, in this process. */
export interface TestWorker {
  /** Where its metrics are, with a METRICS_PORT. */
  metricsUrl: string;
  ctx: WorkerContext;
  close(): Promise<void>;
}

const START = { redeem: startRedeemWorker, seal: startSealWorker, sweep: startSweepWorker };

/** Starts workers with connections of their own; a sweeper only when WORKER_QUEUES names it, so that it surprises no test. */
export async function startWorkers(servers: TestServers, env: Environment = {}): Promise<TestWorker> {
  const ctx = openWorkerContext(testConfig(servers, { WORKER_QUEUES: "redeem,seal", ...env }));
  const metrics = await serveMetrics(ctx);
  const workers = ctx.config.workerQueues.map((queue) => START[queue](ctx));
  return {
    metricsUrl: `http://127.0.0.1:${metrics?.port}/metrics`,
    ctx,
    async close() {
      await Promise.all(workers.map((worker) => worker.close()));
      await metrics?.close();
      await ctx.close();
    },
  };
}
