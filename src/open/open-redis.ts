import { type Config, ConfigError } from "../platform/config.ts";
import { BadRedisUrl, markAsCluster } from "../platform/redis/addresses.ts";
import { checkRedis, problemsOf } from "../platform/redis/requirements.ts";

/** Longest wait for a server at the start of a process, which goes on without an answer. Milliseconds. */
const WAIT_MAX_MS = 5_000;

/**
 * Asks the servers of REDIS_URL what they are, and returns the configuration for their kind. Without an answer, the
 * number of addresses decides.
 * @throws ConfigError when they answer and no process could ever use them as they are.
 */
export async function learnRedis(config: Config): Promise<Config> {
  const { redisUrl, queueShards } = config;
  const check = await checkRedis(redisUrl, queueShards[0], WAIT_MAX_MS);
  const refusals = problemsOf(check).filter(({ effect }) => effect === "refused");
  if (refusals.length > 0) throw new ConfigError(refusals.map(({ message }) => message).join("\n"));
  if (check.isCluster !== true) return config;
  try {
    return { ...config, redisUrl: markAsCluster(redisUrl) };
  } catch (error) {
    if (!(error instanceof BadRedisUrl)) throw error;
    throw new ConfigError(`REDIS_URL ${error.message}`);
  }
}
