import pTimeout from "p-timeout";
import type pg from "pg";
import { shareFor } from "../../platform/batching/share-for.ts";
import type { Config } from "../../platform/config.ts";
import type { DatabaseFence } from "../../platform/db/database-fence.ts";
import { assertMigrated, UnusableDatabase } from "../../platform/db/schema.ts";
import { probeShards, type RefusingShard } from "../../platform/queues/measure-queues.ts";
import { listServedShards, listShards, type Shard } from "../../platform/queues/shards.ts";
import type { RedisClient } from "../../platform/redis/connections.ts";
import { probeWrites } from "../../platform/redis/probe-writes.ts";
import { NO_REDIS, refuses } from "../../platform/redis/requirements.ts";
import type { RedisWatch } from "../../platform/servers/watch-redis.ts";

/** Maximum wait for a server. Milliseconds. */
const PROBE_MS = 1_500;
/** How long a process reuses the result of a probe for other callers. Milliseconds. */
const KEPT_MS = 500;

const NO_POSTGRES = "No answer from Postgres.";

/** Whether the servers provide what requests need. */
export interface Probed {
  /** Why the process cannot use its database. Null if it can. */
  unusable: UnusableDatabase | null;
  /** Why Redis accepts neither reservations nor jobs, as a sentence. Null if it accepts them. */
  redisProblem: string | null;
  /** The shards that refuse jobs while other shards accept them. */
  shards: RefusingShard[];
}

/** Why a process is not ready to serve requests: a sentence for each server that it cannot use. */
interface Readiness {
  postgres: string | null;
  redis: string | null;
}

/**
 * Why a process is not ready, according to a probe.
 * @param hasOpened whether the redeem queue has opened. It opens only after Postgres was reached. So without Postgres,
 * a queue that has not opened says nothing about Redis.
 */
export function readinessOf({ unusable, redisProblem }: Probed, hasOpened: boolean): Readiness {
  const isUsable = hasOpened || unusable !== null;
  return { postgres: unusable?.message ?? null, redis: redisProblem ?? (isUsable ? null : NO_REDIS) };
}

interface RedisDeps {
  redis: RedisClient;
  redisWatch: Pick<RedisWatch, "problem" | "hurry">;
}

interface Deps extends RedisDeps {
  config: Pick<Config, "queueShards">;
  deployment: DatabaseFence;
  /** A pool that only probes use, so that a probe never waits for requests. */
  probes: pg.Pool;
  redeemQueue: { readonly hasOpened: boolean };
}

/**
 * Returns the probe of a process, which reads and writes like requests do. Concurrent callers share one run. Never
 * rejects.
 */
export function openServerProbe(ctx: Deps): () => Promise<Probed> {
  const { deployment, redeemQueue, config } = ctx;
  // Until Postgres was reached, there are no shards to check, because their names contain the deployment's id.
  const shards = () => (redeemQueue.hasOpened ? listShards(deployment.id, config.queueShards[0]) : []);
  const probe = async (): Promise<Probed> => {
    const [unusable, redis] = await Promise.all([
      withFallback(findDatabaseProblem(ctx), new UnusableDatabase("unavailable", NO_POSTGRES)),
      findRedisProblem(ctx, shards()),
    ]);
    return { unusable, ...redis };
  };
  // A good result is not reused if the probe's connection has closed, because the server may have stopped.
  return shareFor(KEPT_MS, probe, ({ unusable }) => unusable !== null || ctx.probes.totalCount > 0);
}

/**
 * Returns the probe of a worker process. Concurrent callers share one run. It reports whether Redis accepts jobs of at
 * least one shard that the process serves. It does not check Postgres, because workers start only after they have
 * reached it. Never rejects.
 */
export function openWorkerProbe(
  ctx: RedisDeps & {
    deployment: DatabaseFence;
    config: Pick<Config, "queueShards" | "workerShards" | "workerQueues" | "queues">;
  },
): () => Promise<boolean> {
  const { config, deployment } = ctx;
  const shards = () => {
    const served = config.queues
      .filter(({ name }) => config.workerQueues.includes(name))
      .flatMap((queue) => listServedShards(queue, deployment.id, config));
    return [...new Map(served.map((shard) => [shard.name, shard])).values()];
  };
  return shareFor(KEPT_MS, async () => (await findRedisProblem(ctx, shards())).redisProblem === null);
}

type ProbedRedis = Omit<Probed, "unusable">;

const findRedisProblem = (ctx: RedisDeps, among: readonly Shard[]): Promise<ProbedRedis> =>
  withFallback(probeRedis(ctx, among), { redisProblem: ctx.redisWatch.problem ?? NO_REDIS, shards: [] });

/**
 * Finds out whether Redis accepts jobs. One accepting shard is enough, because an unreachable shard stops only its own
 * vouchers. Without shards, asks any server.
 */
async function probeRedis({ redis, redisWatch }: RedisDeps, among: readonly Shard[]): Promise<ProbedRedis> {
  const refusing =
    among.length > 0
      ? await probeShards(redis, among)
      : await probeWrites(redis, "{pva}").then((refusal) => (refusal === null ? [] : [{ shard: null, refusal }]));
  if (refusing.some(({ refusal }) => refusal !== null)) redisWatch.hurry();
  const refusals = refusing.map(({ refusal }) => (refusal === null ? NO_REDIS : `Redis ${refuses(refusal)}`));
  const isStopped =
    (among.length > 0 && refusing.length >= among.length) || refusing.some(({ shard }) => shard === null);
  const shards = isStopped
    ? []
    : refusing.flatMap(({ shard, refusal }) => (shard === null ? [] : [{ shard, refusal }]));
  return { redisProblem: redisWatch.problem ?? (isStopped ? (refusals[0] ?? null) : null), shards };
}

/** Why this release cannot use the database, or null. */
async function findDatabaseProblem({ probes, deployment }: Deps): Promise<UnusableDatabase | null> {
  try {
    await assertMigrated(probes);
    return deployment.refusal;
  } catch (error) {
    if (error instanceof UnusableDatabase) return error;
    throw error;
  }
}

/** Returns the result, or `fallback` if it fails or takes longer than {@link PROBE_MS}. */
async function withFallback<T>(result: Promise<T>, fallback: T): Promise<T> {
  return pTimeout(
    result.catch(() => fallback),
    { milliseconds: PROBE_MS, fallback: () => fallback },
  );
}
