import pTimeout, { TimeoutError } from "p-timeout";
import { selectOrganizationNames } from "../core/catalog/db/catalog.ts";
import {
  answeredIn,
  type Counts as CountFields,
  inLastMinute,
  latencyIn,
  readCounts,
  refusalsIn,
  timesUntil,
  unansweredIn,
} from "../core/processes/minute-counts.ts";
import { countLiveReservations } from "../core/reserve/db/reservations.ts";
import { isDatabaseUnavailable } from "../platform/db/transaction.ts";
import { measureQueues } from "../platform/queues/measure-queues.ts";
import { mastersOf } from "../platform/redis/connections.ts";
import { type ActivityCount, readActivity, readPostgres, readStock } from "./db/activity.ts";
import { type FactDeps, nowOf, STOCK } from "./facts.ts";
import { summarizeQueues } from "./read-queues.ts";
import type { FaultWatch } from "./watch.ts";

/**
 * Counts of a minute or an hour: exact redemptions and claims, and approximate refusals and latencies. Null for what is
 * not known.
 */
export type PeriodCounts = ReturnType<typeof merge>[number];

export type Overview = Awaited<ReturnType<typeof readOverview>>;

export type OverviewDeps = Pick<FactDeps, "pool" | "redis" | "deployment" | "config" | "log"> & {
  watch: Pick<FaultWatch, "look">;
};

/** Live reservations are counted up to this number, which takes Postgres about 25 ms. */
const RESERVATIONS_MAX = 100_000;
/** Maximum number of organizations to choose from: the newest ones. */
const ORGANIZATIONS_MAX = 200;
/** Longest wait for Redis. Milliseconds. */
const WAIT_MAX_MS = 1_500;
/** Longest wait for Postgres. Milliseconds. */
const DATABASE_WAIT_MAX_MS = 4_000;
const LATENCY_MINUTES = 5;

/**
 * Reads the overview of an organization, or of all except sandboxes. Processes, queues, servers and faults are those of
 * the whole deployment. What a server does not answer is empty or null.
 */
export async function readOverview(ctx: OverviewDeps, organizationId: string | null) {
  const { redis, deployment, config } = ctx;
  const { problems } = (await ctx.watch.look()).standing;
  const database = problems.postgres === null ? await readDatabase(ctx, organizationId) : null;
  const now = database?.now ?? nowOf(deployment);
  // Async, because reading the id throws while it is unknown, and the returned promise must reject instead.
  const inTime = <T>(read: () => Promise<T>, fallback: T) =>
    pTimeout((async () => read())(), { milliseconds: WAIT_MAX_MS }).catch((error): T => {
      ctx.log.debug({ err: error }, "cannot read a part of the overview");
      return fallback;
    });
  const minuteTimes = timesUntil(now, "minute", 60);
  const hourTimes = timesUntil(now, "hour", 48);
  const [ofMinutes, ofHours, shards, servers] = await Promise.all([
    inTime<CountFields[] | null>(() => readCounts(redis, deployment, "minute", minuteTimes), null),
    inTime<CountFields[] | null>(() => readCounts(redis, deployment, "hour", hourTimes), null),
    inTime(() => measureQueues(redis, deployment.id, config), []),
    inTime(() => readRedisServers(ctx), []),
  ]);
  // The last to be read, because the others may take seconds.
  const look = await ctx.watch.look();
  const { canary, processes } = look.standing;
  return {
    at: now,
    organizationId,
    /** Redemptions and claims before this time are completely counted. */
    completeUntil: database?.completeUntil ?? null,
    minutes: merge(minuteTimes, database?.minutes ?? null, ofMinutes, organizationId),
    hours: merge(hourTimes, database?.hours ?? null, ofHours, organizationId),
    /** The latencies of the last five minutes' redeems. */
    latencyMs: latencyIn((ofMinutes ?? []).slice(-LATENCY_MINUTES)),
    /** The redeems of the last minute; null if they are not known. */
    redeems: ofMinutes && {
      answered: inLastMinute(ofMinutes, now, answeredIn),
      unanswered: inLastMinute(ofMinutes, now, unansweredIn),
    },
    canary: { answeredAt: newestOf((processes ?? []).flatMap(({ canaryAt }) => canaryAt ?? [])), ...canary.latencyMs },
    liveReservations: database?.liveReservations ?? null,
    queues: summarizeQueues(config.queues, shards, processes ?? []),
    stock: database?.stock ?? [],
    processes: processes ?? [],
    look,
    postgres: database?.postgres ?? null,
    redis: servers,
    organizations: database?.organizations ?? [],
  };
}

const newestOf = (times: readonly Date[]) =>
  times.length === 0 ? null : new Date(Math.max(...times.map((time) => time.getTime())));

/** Reads from Postgres; null if it does not answer. One query after the other, because each uses a connection. */
async function readDatabase({ pool, log }: OverviewDeps, organizationId: string | null) {
  const read = async () => ({
    ...(await readActivity(pool, organizationId)),
    liveReservations: await countLiveReservations(pool, RESERVATIONS_MAX),
    stock: await readStock(pool, { organizationId, ...STOCK }),
    postgres: await readPostgres(pool),
    organizations: await selectOrganizationNames(pool, ORGANIZATIONS_MAX),
  });
  return pTimeout(read(), { milliseconds: DATABASE_WAIT_MAX_MS }).catch((error): null => {
    if (!(error instanceof TimeoutError) && !isDatabaseUnavailable(error)) throw error;
    log.debug({ err: error }, "cannot read the overview's data");
    return null;
  });
}

/** @param counts null if redemptions and claims are not known. @param fields null if the others are not. */
function merge(
  times: readonly Date[],
  counts: readonly ActivityCount[] | null,
  fields: readonly CountFields[] | null,
  organizationId: string | null,
) {
  const known = new Map(counts?.map((count) => [count.at.getTime(), count]));
  const none = counts === null ? null : 0;
  return times.map((at, index) => {
    const { redemptions, claims } = known.get(at.getTime()) ?? { redemptions: none, claims: none };
    const own = fields?.[index] ?? null;
    const refusals = own === null ? null : refusalsIn(own, organizationId);
    return { at, redemptions, claims, refusals, latencyMs: latencyIn(own === null ? [] : [own]) };
  });
}

async function readRedisServers({ redis }: OverviewDeps) {
  return Promise.all(
    mastersOf(redis).map(async (master) => {
      const info = await master.info();
      const read = (field: string) => new RegExp(`^${field}:(\\S+)`, "m").exec(info)?.[1] ?? "";
      return {
        address: `${master.options.host}:${master.options.port}`,
        version: read("redis_version"),
        memoryBytes: Number(read("used_memory")),
        clients: Number(read("connected_clients")),
      };
    }),
  );
}

/** The overview as programs read it. Refusals and latencies are approximate. */
export function viewOverview(overview: Overview) {
  const counts = ({ at, redemptions, claims, refusals }: PeriodCounts) => ({ at, redemptions, claims, refusals });
  return {
    at: overview.at,
    organization: overview.organizationId,
    completeUntil: overview.completeUntil,
    minutes: overview.minutes.map(counts),
    hours: overview.hours.map(counts),
    latencyMs: overview.latencyMs,
    redeems: overview.redeems,
    canary: {
      answeredAt: overview.canary.answeredAt,
      p50Ms: overview.canary.p50,
      p99Ms: overview.canary.p99,
    },
    reservations: { live: overview.liveReservations },
    queues: overview.queues,
    stock: overview.stock.map(({ batchId, left, runsOutAt }) => ({ batchId, left, runsOutAt })),
    processes: overview.processes.map(({ role, host, pid, version, queues, since, isUp, problem }) => {
      return { role, host, pid, version, queues, since, state: isUp ? ("up" as const) : ("gone" as const), problem };
    }),
    attention: overview.look.attention.map(({ page: _, ...fault }) => fault),
  };
}
