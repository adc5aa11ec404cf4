import { Closers } from "./closers.ts";
import type { Config } from "./config.ts";
import { Deployment } from "./db/deployment.ts";
import { openPool } from "./db/pool.ts";
import { nameTokenSecrets } from "./domain/reservation-token.ts";
import { Leases } from "./holds/lease.ts";
import { openLog } from "./log.ts";
import { pooledRandomBytes } from "./random.ts";
import { isCluster, openFailFast } from "./redis/connections.ts";
import { openReport } from "./services/ops/process-report.ts";
import { findClusterRisks } from "./services/servers/find-cluster-risks.ts";
import { findDurabilityRisks, warnOfRisks } from "./services/servers/find-durability-risks.ts";
import type { Traces } from "./traces/traces.ts";

/** Opens what API and worker processes have in common. Postgres and Redis need not be reachable yet. */
export function openService(
  config: Config,
  {
    traces,
    role,
    redisName,
    connectionsMax,
  }: { traces: Traces; role: string; redisName: string; connectionsMax: number },
) {
  const log = openLog(config.logLevel, role);
  const closers = new Closers();
  closers.add(() => traces.close());
  const deployment = new Deployment(log);
  const { databaseUrl } = config;
  const pool = openPool({ databaseUrl, max: connectionsMax, applicationName: role, deployment, log });
  closers.add(() => pool.end());
  void deployment.connect(pool);
  void deployment.ready().then(() => deployment.watch(pool));
  closers.add(async () => deployment.close());
  const redis = openFailFast(config.redisUrl, redisName, log);
  closers.add(async () => redis.disconnect());
  const report = openReport({ redis, deployment, log }, role, role === "worker" ? config.workerQueues : []);
  closers.add(() => report.close());
  if (config.production) void deployment.ready().then(() => warnOfRisks(log, findDurabilityRisks({ pool, redis })));
  if (isCluster(redis)) void warnOfRisks(log, findClusterRisks(config.redisUrl, config.queueShards[0]));
  return {
    config,
    log,
    pool,
    deployment,
    redis,
    /** What operators see of this process. */
    report,
    leases: new Leases(redis, deployment),
    traces,
    tokenSecrets: nameTokenSecrets(config.reservationTokenSecrets),
    randomBytes: pooledRandomBytes,
    onClose: (closer: () => Promise<unknown>) => closers.add(closer),
    /** Closes a resource with the service, before those that were opened earlier. Returns the resource. */
    closeLater<Resource extends { close(): Promise<unknown> }>(resource: Resource): Resource {
      closers.add(() => resource.close());
      return resource;
    },
    /** As closeLater, for a resource that is drained. */
    drainLater<Resource extends { drain(): Promise<unknown> }>(resource: Resource): Resource {
      closers.add(() => resource.drain());
      return resource;
    },
    close: () => closers.close(),
  };
}
