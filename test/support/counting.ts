import { pino } from "pino";
import { afterAll, afterEach, beforeAll } from "vitest";
import { type Counter, openCounter } from "../../src/platform/limits/rate-limiter.ts";
import { parseRedisUrl } from "../../src/platform/redis/addresses.ts";
import { openFailFast } from "../../src/platform/redis/connections.ts";
import { monitorRedis, type RedisMonitor } from "./redis-monitor.ts";
import { openTestServers, type TestServers } from "./servers.ts";
import { openTcpProxy, type TcpProxy } from "./tcp-proxy.ts";
import { untilStarted } from "./until.ts";

/** Shared counters of limits, for a test file. */
export interface Counting {
  servers: TestServers;
  /** A proxy to the single Redis. Restored after each test. */
  proxy: TcpProxy;
  monitor: RedisMonitor;
  /** Opens a process's counters on a new connection, until the end of the file. */
  openCounts(redisUrl?: string): Promise<(name: string, windowSeconds: number) => Counter>;
  /** Returns a globally unique name, because the monitor sees the commands of all test files. */
  newName(): string;
}

/** Opens servers, proxy and monitor before the tests of the calling file and closes them afterwards. */
export function useCounting(): Counting {
  const log = pino({ level: "silent" });
  const closers: (() => void)[] = [];
  const counting = {
    async openCounts(redisUrl = counting.servers.redisUrl) {
      const redis = openFailFast(redisUrl, "test", log);
      closers.push(() => redis.disconnect());
      await untilStarted(() => redis.status === "ready");
      return (name, windowSeconds) => openCounter(redis, name, windowSeconds);
    },
    newName: () => `test-${crypto.randomUUID()}`,
  } as Counting;
  beforeAll(async () => {
    counting.servers = await openTestServers();
    const [first] = parseRedisUrl(counting.servers.redisUrl);
    counting.proxy = await openTcpProxy(first?.href ?? "");
    counting.monitor = await monitorRedis(counting.servers.redisUrl);
  });
  afterEach(() => {
    counting.proxy.mend();
  });
  afterAll(async () => {
    for (const close of closers) close();
    counting.monitor.close();
    await counting.proxy.close();
    await counting.servers.close();
  });
  return counting;
}
