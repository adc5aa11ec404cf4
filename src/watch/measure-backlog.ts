import type pg from "pg";
import type { Logger } from "pino";
import { countBrokenChains } from "../core/chain/db/broken-chains.ts";
import { findOldestPendingAge } from "../core/chain/db/events.ts";
import type { Backlog, DatabaseBacklog, WingBacklog } from "../core/metrics/open-metrics.ts";
import { countLiveReservations } from "../core/reserve/db/reservations.ts";
import type { Probed } from "../core/servers/probe-servers.ts";
import type { Config } from "../platform/config.ts";
import type { DatabaseFence } from "../platform/db/database-fence.ts";
import { measureQueues } from "../platform/queues/measure-queues.ts";
import type { RedisClient } from "../platform/redis/connections.ts";
import { inTime } from "./in-time.ts";

/** Live reservations are counted up to this number, which takes Postgres about 25 ms. */
export const RESERVATIONS_MAX = 100_000;
/** Broken chains are counted up to this number. A single broken chain already raises the alert. */
const BROKEN_CHAINS_MAX = 1_000;
/** Maximum wait for a server, shorter than a scrape's timeout, so that a scrape reports the silence. Milliseconds. */
const WAIT_MAX_MS = 2_000;

interface Deps {
  pool: pg.Pool;
  redis: RedisClient;
  config: Config;
  deployment: DatabaseFence;
  probeServers: () => Promise<Probed>;
  log: Logger;
}

/**
 * Returns a function that measures the backlogs in Redis and Postgres. The function never rejects. The measurements of
 * a server that does not respond within two seconds are null.
 */
export function openBacklog(ctx: Deps, backlogs: readonly WingBacklog<unknown>[]): () => Promise<Backlog> {
  const { redis, deployment, config, log } = ctx;
  return async () => {
    const [{ unusable, redisProblem, shards: refusing }, shards, database] = await Promise.all([
      ctx.probeServers(),
      inTime(log, WAIT_MAX_MS, () => measureQueues(redis, deployment.id, config), null),
      inTime(log, WAIT_MAX_MS, () => measureDatabase(ctx, backlogs), null),
    ]);
    const down = {
      postgres: unusable?.state === "unavailable",
      redis: redisProblem !== null,
      shards: refusing.map(({ shard }) => shard.name),
    };
    return { shards, database, down };
  };
}

async function measureDatabase(
  { pool, deployment }: Deps,
  backlogs: readonly WingBacklog<unknown>[],
): Promise<DatabaseBacklog> {
  const ofWings: Record<string, unknown> = {};
  // Takes one measurement after the other, so that a scrape uses only one connection.
  for (const { name, measure } of backlogs) ofWings[name] = await measure(pool);
  return {
    liveReservations: await countLiveReservations(pool, RESERVATIONS_MAX),
    sealLagMs: await findOldestPendingAge(pool),
    clockAheadMs: deployment.clock.aheadMs,
    brokenChains: await countBrokenChains(pool, BROKEN_CHAINS_MAX),
    ofWings,
  };
}
