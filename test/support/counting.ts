import { pino } from "pino";
import { afterAll, afterEach, beforeAll } from "vitest";
import { SharedCounts } from "../../src/limits/shared-counts.ts";
import { openFailFast } from "../../src/queues/connections.ts";
import { monitorRedis, type RedisMonitor } from "./redis-monitor.ts";
import { openTestServers, type TestServers } from "./servers.ts";
import { openTcpProxy, type TcpProxy } from "./tcp-proxy.ts";
import { until } from "./until.ts";

/** What limits count with, for a test file. */
export interface Counting {
  servers: TestServers;
  /** Another way to Redis, which breaks when it is told to. Whole again after each test. */
  proxy: TcpProxy;
  monitor: RedisMonitor;
  /** What a process counts with: a connection of its own, until the test's end. */
  openCounts(redisUrl?: string): Promise<SharedCounts>;
  /** A name whose counts are nobody else's, in any file: a monitor hears the calls of all. */
  newName(): string;
}

/** Opens it before the calling file's tests and closes it behind them; servers, proxy and monitor are there from the first test on. */
export function useCounting(): Counting {
  const log = pino({ level: "silent" });
  const closers: (() => void)[] = [];
  const counting = {
    async openCounts(redisUrl = counting.servers.redisUrl) {
      const redis = openFailFast(redisUrl, "test", log);
      closers.push(() => redis.disconnect());
      await until(() => redis.status === "ready");
      return new SharedCounts(redis, log);
    },
    newName: () => `test-${crypto.randomUUID()}`,
  } as Counting;
  beforeAll(async () => {
    counting.servers = await openTestServers();
    counting.proxy = await openTcpProxy(counting.servers.redisUrl);
    counting.monitor = await monitorRedis(counting.servers.redisUrl);
  });
  afterEach(() => {
    counting.proxy.mend();
    for (const close of closers.splice(0)) close();
  });
  afterAll(async () => {
    counting.monitor.close();
    await counting.proxy.close();
    await counting.servers.close();
  });
  return counting;
}
