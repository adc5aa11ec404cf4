import { problemsOf } from "../platform/checks.ts";
import { type Config, ConfigError } from "../platform/config.ts";
import { BadRedisUrl, markAsCluster } from "../platform/redis/addresses.ts";
import { checkRedis } from "../platform/redis/requirements.ts";

/** Maximum wait for a server at the start. When it is over, the process continues without a response. Milliseconds. */
const WAIT_MAX_MS = 5_000;

/**
 * Asks the servers of REDIS_URL whether they form a cluster, and returns the configuration with the result. If no
 * server responds, several addresses count as a cluster.
 * @throws ConfigError when they respond but no process could ever use them in their current state.
 */
export async function learnRedis(config: Config): Promise<Config> {
  const { redisUrl, queueShards } = config;
  const check = await checkRedis(redisUrl, queueShards[0], WAIT_MAX_MS);
  const refusals = problemsOf(check.rows).filter(({ effect }) => effect === "refused");
  if (refusals.length > 0) throw new ConfigError(refusals.map(({ message }) => message).join("\n"));
  if (check.isCluster !== true) return config;
  try {
    return { ...config, redisUrl: markAsCluster(redisUrl) };
  } catch (error) {
    if (!(error instanceof BadRedisUrl)) throw error;
    throw new ConfigError(`REDIS_URL ${error.message}`);
  }
}
