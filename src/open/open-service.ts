import { StallMeter } from "../core/metrics/stall-meter.ts";
import { MinuteCounts } from "../core/processes/minute-counts.ts";
import { ProcessRecord } from "../core/processes/process-record.ts";
import { Leases } from "../core/reserve/lease.ts";
import { nameTokenSecrets } from "../core/reserve/reservation-token.ts";
import type { Config } from "../platform/config.ts";
import { DatabaseFence } from "../platform/db/database-fence.ts";
import { openPool } from "../platform/db/pool.ts";
import { nameOfProcess } from "../platform/db/working-sessions.ts";
import { openLifetime } from "../platform/lifetime.ts";
import { openLogger } from "../platform/logger.ts";
import { pooledRandomBytes } from "../platform/random.ts";
import { openFailFast } from "../platform/redis/connections.ts";
import { shareMemory } from "../platform/servers/share-memory.ts";
import { RedisWatch } from "../platform/servers/watch-redis.ts";
import type { Traces } from "../platform/traces/traces.ts";

/**
 * Opens what API and worker processes share. Postgres and Redis need not be reachable yet.
 * @param config comes from learnRedis, which has found out whether Redis is a cluster.
 */
export function openService(
  config: Config,
  {
    traces,
    role,
    redisName,
    connectionsMax,
  }: { traces: Traces; role: string; redisName: string; connectionsMax: number },
) {
  const log = openLogger(config.logLevel, role);
  const lifetime = openLifetime();
  const { use } = lifetime;
  use(traces);
  const stalls = use(new StallMeter());
  const redis = openFailFast(config.redisUrl, redisName, log);
  use({ close: async () => redis.disconnect() });
  const deployment = new DatabaseFence(log, shareMemory(redis));
  const { databaseUrl, production: tellsRisks } = config;
  const connections = { max: connectionsMax, applicationName: nameOfProcess(role), use: "service" } as const;
  const pool = openPool({ databaseUrl, ...connections, tellsRisks, deployment, log });
  use({ close: () => pool.end() });
  void deployment.connect(pool);
  void deployment.ready().then(() => deployment.watchClock(pool));
  void deployment.ready().then(() => deployment.watchMarks(pool));
  void deployment.watchShared();
  use(deployment);
  const redisWatch = use(new RedisWatch({ config, log }));
  redis.on("ready", () => redisWatch.hurry());
  return {
    config,
    log,
    pool,
    deployment,
    redis,
    redisWatch,
    process: use(new ProcessRecord({ pool, deployment, log }, role)),
    counts: use(new MinuteCounts({ redis, deployment, log })),
    stalls,
    leases: new Leases(redis, deployment),
    traces,
    tokenSecrets: nameTokenSecrets(config.reservationTokenSecrets),
    randomBytes: pooledRandomBytes,
    ...lifetime,
  };
}

export type ServiceContext = ReturnType<typeof openService>;
