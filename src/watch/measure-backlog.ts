import pTimeout from "p-timeout";
import type pg from "pg";
import type { Logger } from "pino";
import { countBrokenChains } from "../core/chain/db/broken-chains.ts";
import { findOldestPendingAge } from "../core/chain/db/events.ts";
import type { Backlog, DatabaseBacklog } from "../core/metrics/open-metrics.ts";
import { countLiveReservations } from "../core/reserve/db/reservations.ts";
import type { Probed } from "../core/servers/probe-servers.ts";
import type { Config } from "../platform/config.ts";
import type { DatabaseFence } from "../platform/db/database-fence.ts";
import { measureQueues, type ShardBacklog } from "../platform/queues/measure-queues.ts";
import type { RedisClient } from "../platform/redis/connections.ts";
import { isFresh, keepValue, readKept, reportPrefix } from "../platform/redis/kept-values.ts";

/** Live reservations are counted up to this number, which takes Postgres about 25 ms. */
const RESERVATIONS_MAX = 100_000;
/** Broken chains are counted up to this number. One broken chain already raises the alert. */
const BROKEN_CHAINS_MAX = 1_000;
/**
 * Longest wait for a server: a scrape has a short timeout of its own and must report that a server is down.
 * Milliseconds.
 */
const WAIT_MAX_MS = 2_000;

interface Deps {
  pool: pg.Pool;
  redis: RedisClient;
  config: Config;
  deployment: DatabaseFence;
  probeServers: () => Promise<Probed>;
  log: Logger;
}

/** The measurements of a wing in Postgres, by the names of their fields. */
export type BacklogMeasures = {
  [Field in "log" | "stock" | "webhooks"]?: (pool: pg.Pool) => Promise<DatabaseBacklog[Field]>;
};

/**
 * How long a process uses another process's measurements: less than the usual 15 seconds between scrapes. Milliseconds.
 */
const SHARED_MS = 10_000;

/** Longest wait for another process's measurements. Milliseconds. */
const SHARED_WAIT_MAX_MS = 500;

/** The measurements that a process shares with the others. */
interface SharedBacklog extends Omit<Backlog, "down"> {
  by: string;
}

/**
 * Returns a function that measures the backlogs in Redis and Postgres. If both servers answer this process, it uses
 * another process's measurements of the last ten seconds. It never rejects: the part of a server that does not respond
 * within two seconds is null.
 */
export function openBacklog(ctx: Deps, measures: BacklogMeasures): () => Promise<Backlog> {
  const self = crypto.randomUUID();
  return async () => {
    const probing = ctx.probeServers();
    const [shared, ping] = await Promise.all([
      inTime(ctx, readShared(ctx, self), SHARED_WAIT_MAX_MS),
      inTime(ctx, ctx.pool.query("SELECT"), SHARED_WAIT_MAX_MS),
    ]);
    if (shared?.database != null && ping !== null) {
      const database = { ...shared.database, clockAheadMs: ctx.deployment.clock.aheadMs };
      return { ...shared, database, down: downOf(await probing) };
    }
    const [shards, database] = await Promise.all([
      inTime(ctx, measureJobs(ctx)),
      inTime(ctx, measureDatabase(ctx, measures)),
    ]);
    const measured: SharedBacklog = { shards, database, by: self };
    if (shards !== null && database !== null) await keepValue(ctx.redis, keyOf(ctx), SHARED_MS, measured);
    return { shards, database, down: downOf(await probing) };
  };
}

/** The servers and shards that do not answer this process, or take no writes. */
function downOf({ unusable, redisProblem, shards }: Probed): Backlog["down"] {
  return {
    postgres: unusable?.state === "unavailable",
    redis: redisProblem !== null,
    shards: shards.map(({ shard }) => shard.name),
  };
}

const keyOf = ({ deployment }: Deps) => `${reportPrefix(deployment)}:backlog`;

/** Another process's measurements. This process's own would be as old as its last scrape. */
async function readShared(ctx: Deps, self: string): Promise<SharedBacklog | null> {
  const found = await readKept<SharedBacklog>(ctx.redis, keyOf(ctx), SHARED_MS);
  return found === null || found.value.by === self || !isFresh(found, SHARED_MS) ? null : found.value;
}

// Async, because `deployment.id` throws while the id is unknown, and the returned promise must reject instead.
async function measureJobs({ redis, deployment, config }: Deps): Promise<ShardBacklog[]> {
  return measureQueues(redis, deployment.id, config);
}

async function measureDatabase({ pool, deployment }: Deps, measures: BacklogMeasures): Promise<DatabaseBacklog> {
  const ofWings: [string, unknown][] = [];
  // One measurement after the other, so that a scrape uses only one connection.
  for (const [field, measure] of Object.entries(measures)) ofWings.push([field, await measure(pool)]);
  return {
    liveReservations: await countLiveReservations(pool, RESERVATIONS_MAX),
    sealLagMs: await findOldestPendingAge(pool),
    clockAheadMs: deployment.clock.aheadMs,
    brokenChains: await countBrokenChains(pool, BROKEN_CHAINS_MAX),
    ...Object.fromEntries(ofWings),
  };
}

async function inTime<T>({ log }: Deps, measured: Promise<T>, milliseconds = WAIT_MAX_MS): Promise<T | null> {
  try {
    return await pTimeout(measured, { milliseconds });
  } catch (error) {
    log.debug({ err: error }, "cannot measure the backlog");
    return null;
  }
}
