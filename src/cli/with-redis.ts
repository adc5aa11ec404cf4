import type { Logger } from "pino";
import { problemsOf } from "../platform/checks.ts";
import { markAsCluster } from "../platform/redis/addresses.ts";
import { isRedisUnavailable, openFailFast, type RedisClient, untilReady } from "../platform/redis/connections.ts";
import { checkRedis } from "../platform/redis/requirements.ts";
import { ServersUnavailable, UsageError } from "./exit-code.ts";

/** Maximum wait for a connection and for each response. Long, because the machine may be busy. Milliseconds. */
const RESPONSE_MAX_MS = 10_000;

/** Runs `work` on a connection to Redis. @throws UsageError without REDIS_URL, ServersUnavailable without an answer. */
export async function withRedis<T>(
  { redisUrl, log }: { redisUrl: string | null; log: Logger },
  work: (redis: RedisClient) => Promise<T>,
): Promise<T> {
  if (redisUrl === null) throw new UsageError("REDIS_URL is not set.");
  const { isCluster, rows } = await checkRedis(redisUrl, 1, RESPONSE_MAX_MS);
  const unusable = problemsOf(rows).find(({ code }) => ["redis_unusable", "redis_full"].includes(code));
  if (unusable !== undefined) throw new ServersUnavailable(unusable.message);
  const url = isCluster === true ? markAsCluster(redisUrl) : redisUrl;
  const redis = openFailFast(url, "voucherctl", log, RESPONSE_MAX_MS);
  let isReady = false;
  try {
    await untilReady(redis, RESPONSE_MAX_MS);
    isReady = true;
    return await work(redis);
  } catch (error) {
    if (isReady && !isRedisUnavailable(error)) throw error;
    const reason = isReady ? ` (${(error as Error).message})` : "";
    throw new ServersUnavailable(`Redis does not answer${reason}. Check REDIS_URL.`, { cause: error });
  } finally {
    redis.disconnect();
  }
}
