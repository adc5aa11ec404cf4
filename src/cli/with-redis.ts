import type { RedisClient } from "../redis/connections.ts";
import type { CommandContext } from "./command.ts";
import { ServersUnavailable } from "./exit-code.ts";

/**
 * Runs a part of a command on a connection to Redis. Loads the client on demand, because most commands need no Redis.
 * @throws ServersUnavailable when Redis does not answer.
 */
export async function withRedis<T>(
  { log }: Pick<CommandContext, "log">,
  redisUrl: string,
  work: (redis: RedisClient) => Promise<T>,
): Promise<T> {
  const { openFailFast, untilReady } = await import("../redis/connections.ts");
  const redis = openFailFast(redisUrl, "voucherctl", log);
  try {
    await untilReady(redis).catch((cause) => {
      throw new ServersUnavailable("Redis does not answer. Check REDIS_URL.", { cause });
    });
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}
