import { ReplyError } from "ioredis";
import { expect, it } from "vitest";
import { openWorkerProbe } from "../../../src/core/servers/probe-servers.ts";
import { CONFIG_PARTS } from "../../../src/open/config-parts.ts";
import { listShards } from "../../../src/platform/queues/shards.ts";
import { itOnOneRedis } from "../../support/servers.ts";
import { startWorkers } from "../../support/service.ts";
import { openTcpProxy } from "../../support/tcp-proxy.ts";
import { until } from "../../support/until.ts";
import { useDatabase } from "../../support/use-service.ts";

const { servers } = useDatabase();

itOnOneRedis("a worker without Redis is alive but not ready", async () => {
  const proxy = await openTcpProxy(servers.redisUrl);
  // Closes after the worker: BullMQ may wait for Redis for ever when a worker closes.
  servers.onClose(() => proxy.close());
  proxy.cut();
  const worker = await startWorkers(servers, { METRICS_PORT: "0", REDIS_URL: proxy.url });
  const statusOf = async (path: string) => (await fetch(new URL(path, worker.metricsUrl))).status;
  expect(await statusOf("/readyz")).toBe(503);
  proxy.mend();
  await until(async () => (await statusOf("/readyz")) === 200);
  for (const stop of [proxy.cut, proxy.jam, proxy.muffle]) {
    stop();
    await until(async () => (await statusOf("/readyz")) === 503);
    expect(await statusOf("/metrics")).toBe(200);
    proxy.mend();
    await until(async () => (await statusOf("/readyz")) === 200);
  }
});

it.each<[isReady: boolean, why: string, probed: Probed]>([
  [true, "all shards take jobs", {}],
  [true, "one of its shards takes jobs", { away: [0] }],
  [false, "none of its shards takes jobs", { away: [0, 1] }],
  [false, "its only shard does not answer", { shards: [1], away: [1] }],
  [true, "a shard of other workers does not answer", { shards: [1], away: [0] }],
  [false, "the shard of a queue that has one shard does not answer", { queues: ["sweep"], away: [0] }],
  [true, "another shard than that of its queue does not answer", { queues: ["sweep"], away: [1] }],
  [false, "it serves no shard, and Redis does not answer", { queues: ["sweep"], shards: [1], away: [0, 1] }],
  [false, "Redis refuses writes", { refuses: "OOM command not allowed" }],
  [false, "Redis lacks what the code needs", { problem: "Redis is too old." }],
])("a worker's readiness is %s if %s", async (isReady, _, probed) => {
  expect(await probeOf(probed)()).toBe(isReady);
});

interface Probed {
  queues?: string[];
  /** The shards of the worker, out of two. All by default. */
  shards?: number[];
  /** The shards whose servers are unreachable. */
  away?: number[];
  /** The message with which Redis refuses writes, if it does. */
  refuses?: string;
  /** The problem that the readiness check has found before the probe, if any. */
  problem?: string;
}

function probeOf({ queues = ["redeem"], shards, away = [], refuses, problem }: Probed) {
  const deployment = { id: "deployment" };
  const silent = listShards(deployment.id, 2).filter(({ index }) => away.includes(index));
  const redis = {
    async eval(_script: string, _keys: number, key: string) {
      if (refuses !== undefined) throw new ReplyError(refuses);
      if (away.length === 2 || silent.some(({ prefix }) => key.startsWith(prefix))) throw new Error("closed");
    },
  };
  const own = { queueShards: [2], workerShards: shards ?? null, workerQueues: queues };
  const config = { ...own, queues: CONFIG_PARTS.queues };
  const redisWatch = { problem: problem ?? null, hurry: () => {} };
  return openWorkerProbe({ redis, redisWatch, deployment, config } as unknown as Parameters<typeof openWorkerProbe>[0]);
}
